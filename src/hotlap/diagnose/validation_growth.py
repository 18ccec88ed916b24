"""How long the validations of a run take, one after the other, and whether each takes longer than the one before."""

from __future__ import annotations

from dataclasses import dataclass

from hotlap.diagnose.policy import Policy
from hotlap.diagnose.trend import mann_kendall_z, theil_sen
from hotlap.records.rows import Event

__all__ = ["ValidationGrowth", "find_validation_growth"]


@dataclass(frozen=True)
class ValidationGrowth:
    """Fitted seconds of the first and of the last validation, and the steps at which they came."""

    first_s: float
    last_s: float
    first_step: int
    last_step: int
    count: int

    @property
    def extra_s_per_step(self) -> float:
        """What the last validation takes more than the first, spread over the steps between two."""
        every = (self.last_step - self.first_step) / max(1, self.count - 1)
        return (self.last_s - self.first_s) / max(1.0, every)


def find_validation_growth(events: list[Event], policy: Policy) -> ValidationGrowth | None:
    """None with fewer validations than a trend needs, or when they hold. The first is left out: it is cold."""
    seconds: dict[int, float] = {}
    for event in events:
        if event.kind == "validation" and event.i > 0:
            seconds[event.i] = seconds.get(event.i, 0.0) + max(0, event.w) / 1e9
    steps = sorted(seconds)[1:]
    if len(steps) < policy.min_validations:
        return None
    values = [seconds[step] for step in steps]
    slope, start = theil_sen(values)
    last = start + slope * (len(values) - 1)
    if start <= 0.0 or last < (1.0 + policy.validation_growth_frac) * start:
        return None
    if mann_kendall_z(values) < policy.validation_trend_z:
        return None
    return ValidationGrowth(start, last, steps[0], steps[-1], len(values))
