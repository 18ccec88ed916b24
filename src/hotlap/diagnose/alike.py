"""Which phases of a step grew from one side of a change to the other, and whether they grew alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hotlap.diagnose.kept import kept
from hotlap.diagnose.phases import mean_s
from hotlap.diagnose.policy import Policy
from hotlap.diagnose.view import View
from hotlap.records.findings import Drift

__all__ = ["Growth", "grew_alike", "measure_growth"]

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
    phases = (*_COMPUTE, _UPDATE)
    return _growth({p: early.seconds(p) for p in phases}, {p: late.seconds(p) for p in phases}, step_more, early.policy)


def grew_alike(view: View, drift: Drift) -> bool:
    """Whether all that computes got slower alike in a run that nothing is kept in from step to step: it is not the
    script that changed, but what the processor gave it."""
    rows, third = view.steady.rows, max(1, len(view.steady.rows) // 3)
    early, late = rows[:third], rows[-third:]
    if not drift.growing:
        early, late = ([r for r in rows if (r.i >= drift.at_step) == after] for after in (False, True))
    if drift.before_s <= 0 or any(k.kind != "tensor" for k in kept(view)):
        return False
    before, after = ({p: mean_s(part, p, view.phases) or 0.0 for p in (*_COMPUTE, _UPDATE)} for part in (early, late))
    return _growth(before, after, drift.after_s / drift.before_s - 1.0, view.policy).all_alike


def _growth(before: Mapping[str, float], after: Mapping[str, float], step_more: float, policy: Policy) -> Growth:
    """Of seconds per step, by phase."""
    able = [phase for phase in before if before[phase] >= policy.alike_least_s and after[phase] > 0.0]
    ratios = {phase: after[phase] / before[phase] for phase in able}
    before_s, after_s = sum(before[phase] for phase in able), sum(after[phase] for phase in able)
    more = after_s / before_s - 1.0 if before_s > 0 else 0.0
    if more < max(policy.change_frac, policy.alike_frac * step_more):
        return Growth(ratios, False, False)
    took_part = {phase: ratio - 1.0 >= policy.alike_frac * more for phase, ratio in ratios.items()}
    compute = all(took_part.get(phase, False) for phase in _COMPUTE)
    update = took_part.get(_UPDATE)
    return Growth(ratios, compute and update is True, compute and update is False)
