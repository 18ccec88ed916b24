"""What a lever that compiles costs at its start, and from how many steps on it has paid."""

from __future__ import annotations

import statistics

from hotlap.records.trials import Trial
from hotlap.report import units
from hotlap.trial.arm import Arm

__all__ = ["earned_back"]

WORTH_TELLING_S = 3.0
"""A start that takes no longer is no news."""


def earned_back(lever: str, arm: Arm, trial: Trial) -> list[str]:
    """A sentence for the user: the arm's longest step, which is the one that compiled, over what a step saves.

    No sentence where nothing is saved, or no step took long.
    """
    trainer = arm.poll()
    before = [w.steady_s for w in trial.windows if w.arm == "baseline" and w.steps]
    if trainer is None or not trainer.steps or not before or trial.interval is None or trial.interval.ratio <= 1.0:
        return []
    step_s = statistics.median(before)
    start_s = max(row.w for row in trainer.steps) / 1e9 - step_s
    if start_s < WORTH_TELLING_S:
        return []
    steps = round(start_s / (step_s * (1.0 - 1.0 / trial.interval.ratio)))
    return [
        f"{lever} took {units.seconds(start_s)} at its first start, which {steps:,} steps earn back; later starts find "
        "what was compiled."
    ]
