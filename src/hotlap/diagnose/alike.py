"""Which phases of a step grew from one side of a change to the other, and whether they grew alike."""

from __future__ import annotations

from dataclasses import dataclass

from hotlap.diagnose.view import View

__all__ = ["Growth", "measure_growth"]

_COMPUTE = ("forward", "backward")
_UPDATE = "optimizer"
"""An update takes the same time whatever the batch holds: it grows when the processor gets slower, not otherwise."""


@dataclass(frozen=True)
class Growth:
    """Ratios late over early, by phase, of the phases long enough to tell."""

    ratios: dict[str, float]
    all_alike: bool
    """Forward, backward and the update all grew as the step did: the processor is slower, or has less time for us."""
    compute_alike: bool
    """Forward and backward grew as the step did and the update did not: there is more to compute."""


def measure_growth(early: View, late: View, step_more: float) -> Growth:
    """Set the phases of two parts of a run against each other. ``step_more``: by which part the whole step grew.

    Where the step grew by much more than what computes in it, that is not what made it slower.
    """
    policy = early.policy
    ratios: dict[str, float] = {}
    before_s = after_s = 0.0
    for phase in (*_COMPUTE, _UPDATE):
        before, after = early.seconds(phase), late.seconds(phase)
        if before >= policy.alike_least_s and after > 0.0:
            ratios[phase] = after / before
            before_s, after_s = before_s + before, after_s + after
    more = after_s / before_s - 1.0 if before_s > 0 else 0.0
    if more < max(policy.change_frac, policy.alike_frac * step_more):
        return Growth(ratios, False, False)
    took_part = {phase: ratio - 1.0 >= policy.alike_frac * more for phase, ratio in ratios.items()}
    compute = all(took_part.get(phase, False) for phase in _COMPUTE)
    update = took_part.get(_UPDATE)
    return Growth(ratios, compute and update is True, compute and update is False)
