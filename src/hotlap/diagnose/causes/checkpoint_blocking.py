"""checkpoint-blocking: saving checkpoints holds the step."""

from __future__ import annotations

from hotlap.diagnose.cadence import cadence_advice, cadence_evidence
from hotlap.diagnose.host import residual_seconds
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "checkpoint-blocking"


def find(view: View) -> Finding | None:
    """The checkpoint phase at its cadence, and saves by other means that the stacks show in the residual."""
    work = view.times.checkpoint
    other_s, book = residual_seconds(view, "checkpoint")
    lines = view.event_where("checkpoint") or book.lines(view.policy.max_where)
    where = [*view.option_where(CAUSE), *lines][: view.policy.max_where]
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    every = f"every {work.every:.0f} steps" if work.every else "in the steps seen"
    evidence = {**cadence_evidence(view, work), "residual_s": other_s}
    evidence |= view.stack_evidence(view.stacks.phase("checkpoint"))
    return view.finding(
        CAUSE, view.seconds("checkpoint") + other_s,
        f"Save in the background from a copy{at}, or less often: one checkpoint takes {work.each_s:.3g} s {every}"
        f"{cadence_advice(view, work)}.", where, detail=every, phase="checkpoint", evidence=evidence,
        ablation="checkpoint",
    )  # fmt: skip
