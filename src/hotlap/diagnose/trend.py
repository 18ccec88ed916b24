"""Robust statistics over blocks of steps: Theil-Sen slope, Mann-Kendall z, the best change point. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import median

__all__ = ["ChangePoint", "change_point", "mann_kendall_z", "theil_sen"]


@dataclass(frozen=True)
class ChangePoint:
    """The values change at ``index`` (first of the right side)."""

    index: int
    before: float
    after: float
    cost: float
    """Sum of absolute deviations from the two medians."""
    scatter: float
    """MAD within the two sides."""


def theil_sen(values: list[float]) -> tuple[float, float]:
    """Median slope per block, and the median intercept. Fewer than two values: (0, the value)."""
    if len(values) < 2:
        return 0.0, values[0] if values else 0.0
    slope = median((values[j] - values[i]) / (j - i) for i, j in combinations(range(len(values)), 2))
    return slope, median(value - slope * i for i, value in enumerate(values))


def mann_kendall_z(values: list[float]) -> float:
    """Standard-normal score of a monotone trend (no correction for ties)."""
    n = len(values)
    if n < 3:
        return 0.0
    s = sum((b > a) - (b < a) for a, b in combinations(values, 2))
    return (s - (s > 0) + (s < 0)) / sqrt(n * (n - 1) * (2 * n + 5) / 18)


def change_point(values: list[float], margin: int) -> ChangePoint | None:
    """The split that leaves the least absolute deviation, at least ``margin`` values on each side."""
    best: ChangePoint | None = None
    for index in range(margin, len(values) - margin + 1):
        left, right = values[:index], values[index:]
        before, after = median(left), median(right)
        deviations = [abs(v - before) for v in left] + [abs(v - after) for v in right]
        cost = sum(deviations)
        if best is None or cost < best.cost:
            best = ChangePoint(index, before, after, cost, median(deviations))
    return best
