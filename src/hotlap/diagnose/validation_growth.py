"""How long the validations of a run take, one after the other, and whether each takes longer than the one before."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from hotlap.diagnose.policy import Policy
from hotlap.diagnose.trend import change_point, mann_kendall_z, theil_sen
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
    """None with fewer validations than a trend needs, when they hold, and when they changed once rather than grew.

    The first is left out: it is cold.
    """
    seconds: dict[int, float] = {}
    for event in events:
        if event.kind == "validation" and event.i > 0:
            seconds[event.i] = seconds.get(event.i, 0.0) + max(0, event.w) / 1e9
    steps = sorted(seconds)[1:]
    if len(steps) < policy.min_validations:
        return None
    values = _blocks([seconds[step] for step in steps], policy.max_blocks)
    slope, start = theil_sen(values)
    last = start + slope * (len(values) - 1)
    if start <= 0.0 or last < (1.0 + policy.validation_growth_frac) * start:
        return None
    if mann_kendall_z(values) < policy.validation_trend_z:
        return None
    if _changed_once(values, sum(abs(v - start - slope * k) for k, v in enumerate(values)), policy):
        return None  # of the disk or the machine: what validates does not grow
    return ValidationGrowth(start, last, steps[0], steps[-1], len(steps))


def _changed_once(values: list[float], line_cost: float, policy: Policy) -> bool:
    """Whether one change fits better than a line, and nothing grows after it."""
    point = change_point(values, max(2, len(values) // 8))
    if point is None or point.cost >= line_cost:
        return False
    return mann_kendall_z(values[point.index :]) < policy.validation_trend_z


def _blocks(values: list[float], most: int) -> list[float]:
    """Means of neighbours, so many that at most ``most`` are left: a trend is sought among all pairs of them."""
    size = -(-len(values) // most)
    return [fmean(values[at : at + size]) for at in range(0, len(values), size)]
