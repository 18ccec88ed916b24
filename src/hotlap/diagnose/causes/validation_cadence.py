"""validation-cadence: validation takes a large share of the run."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "validation-cadence"


def find(view: View) -> Finding | None:
    """Validation's cost at its own cadence."""
    work = view.times.validation
    where = view.event_where("validation")
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    every = f"every {work.every:.0f} steps" if work.every else "in the steps seen"
    evidence = {"each_s": work.each_s, "every_steps": work.every, "seen": work.count}
    evidence |= view.stack_evidence(view.stacks.phase("validation"))
    return view.finding(
        CAUSE, view.seconds("validation"),
        f"Validate less often, or on part of the data{at}: one validation takes {work.each_s:.3g} s {every}.", where,
        detail=every, phase="validation", evidence=evidence, ablation="validation",
    )  # fmt: skip
