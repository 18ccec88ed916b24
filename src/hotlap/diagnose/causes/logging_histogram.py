"""logging-histogram: histograms, images or figures are logged often."""

from __future__ import annotations

from hotlap.diagnose.log_kinds import logged
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "logging-histogram"


def find(view: View) -> Finding | None:
    """The heavy part of the logging, and how often it comes."""
    found = logged(view, "heavy")
    per_step = found.timed.per_step
    often = f"{per_step:.3g} calls per step" if per_step >= 1 else (
        f"every {1 / per_step:.0f} steps" if per_step else "in the steps seen"
    )  # fmt: skip
    evidence = {
        "logging_s": found.phase_s, "residual_s": found.residual_s, "each_s": found.timed.each_s,
        "calls_per_step": per_step, **view.stack_evidence(found.book),
    }  # fmt: skip
    return view.finding(
        CAUSE, found.seconds, f"Log histograms and pictures ten times less often{found.at}.", found.where,
        detail=often, phase=found.phase, evidence=evidence, ablation="logging",
    )  # fmt: skip
