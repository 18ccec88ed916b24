"""How long the validations of a run take, one after the other, and whether each takes longer than the one before."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median

from hotlap.diagnose.policy import Policy
from hotlap.diagnose.trend import change_point, mann_kendall_z, theil_sen
from hotlap.records.rows import Event

__all__ = ["ValidationGrowth", "find_validation_growth"]

LATE = 8
"""The last so many, twice as many, and so on are looked at by themselves, with as many before them: a growth that
begins late is lost in a trend over the whole run."""
LATE_TREND_Z = 2.8
"""Mann-Kendall z wanted of these: that of eight of which hardly two are out of order."""
LATE_SPREADS = 9.0
"""Their slope, over its deviation by the scatter of those before: a guard asks at each validation,
and noise is not to pass for growth in thousands of looks."""


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

    The first is left out: it is cold. A growth over the whole run comes before one that began late.
    """
    seconds: dict[int, float] = {}
    for event in events:
        if event.kind == "validation" and event.i > 0:
            seconds[event.i] = seconds.get(event.i, 0.0) + max(0, event.w) / 1e9
    steps = sorted(seconds)[1:]
    if len(steps) < policy.min_validations:
        return None
    values = [seconds[step] for step in steps]
    fitted = _fitted(_blocks(values, policy.max_blocks), policy.validation_trend_z, policy)
    if fitted is not None:
        return ValidationGrowth(*fitted, steps[0], steps[-1], len(steps))
    last = LATE
    while 2 * last <= len(values) and last <= policy.max_blocks:
        fitted = _fitted(values[-last:], LATE_TREND_Z, policy)
        if fitted is not None and _stands_out(values[:-last][-policy.max_blocks :], fitted, last, policy):
            return ValidationGrowth(*fitted, steps[-last], steps[-1], last)
        last *= 2
    return None


def _fitted(values: list[float], trend_z: float, policy: Policy) -> tuple[float, float] | None:
    """First and last value of a line through values that grow; None where they do not."""
    slope, start = theil_sen(values)
    last = start + slope * (len(values) - 1)
    if start <= 0.0 or last < (1.0 + policy.validation_growth_frac) * start or mann_kendall_z(values) < trend_z:
        return None
    if _changed_once(values, sum(abs(v - start - slope * k) for k, v in enumerate(values)), policy):
        return None  # of the disk or the machine: what validates does not grow
    return start, last


def _stands_out(before: list[float], fitted: tuple[float, float], count: int, policy: Policy) -> bool:
    """Whether a line through the ``count`` values that follow ``before`` is steeper than their scatter explains.

    The deviation of a least-squares slope is sigma over sqrt(n (n^2 - 1) / 12); sigma is a quarter of the range, which
    no single outlier leaves small.
    """
    slope = (fitted[1] - fitted[0]) / (count - 1)
    sigma = (max(before) - min(before)) / 4
    steep = slope * sqrt(count * (count**2 - 1) / 12) >= LATE_SPREADS * sigma
    *_, slowest, _ = sorted(before)  # but for one, which somebody may have disturbed
    least = max((1.0 + policy.validation_growth_frac) * median(before), (1.0 + policy.change_frac) * slowest)
    return steep and fitted[1] >= least


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
