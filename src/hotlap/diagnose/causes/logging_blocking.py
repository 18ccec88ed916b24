"""logging-blocking: logging holds the step."""

from __future__ import annotations

from hotlap.diagnose.log_kinds import logged
from hotlap.diagnose.stacks import merge
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "logging-blocking"


def find(view: View) -> Finding | None:
    """The logging phase, and writes that the stacks show in the residual; forced and heavy writes are told apart."""
    found = logged(view, "plain")
    both = merge([view.stacks.phase("logging"), found.book], view.timeline.source, view.timeline.loops)
    evidence = {"logging_s": found.phase_s, "residual_s": found.residual_s, **view.stack_evidence(both)}
    return view.finding(
        CAUSE, found.seconds, f"Log less often, or write from a background thread{found.at}.", found.where,
        detail="writing logs", phase=found.phase, evidence=evidence, ablation="logging",
    )  # fmt: skip
