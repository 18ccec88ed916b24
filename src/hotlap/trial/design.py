"""How a trial is laid out: when an arm is warm, how long a turn is, whose turn it is, when it is enough. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from hotlap.records.rows import Step
from hotlap.records.trials import TOO_FEW, Interval, Window
from hotlap.trial.budget import Budget
from hotlap.trial.windows import steady_ns

__all__ = [
    "bearable_load",
    "counted_pairs",
    "enough",
    "is_steady",
    "mean_turn_s",
    "order",
    "pace_s",
    "turn_s",
    "turn_steps",
    "typical_step_s",
    "words_on_counted",
    "worth_more_time",
]

RECENT = 24
"""Steps that the trend is judged by."""
TREND_FRAC = 0.04
"""A later half that is faster by less than this is steady."""


def step_times_s(steps: Sequence[Step]) -> list[float]:
    """Steady seconds per step, one value a row."""
    return [steady_ns(row) / row.n / 1e9 for row in steps if row.n]


def typical_step_s(steps: Sequence[Step]) -> float:
    """Median of the last steps, periodic work included; 0.0 before the first."""
    recent = [row.w / row.n / 1e9 for row in steps[-RECENT:] if row.n]
    return statistics.median(recent) if recent else 0.0


def is_steady(steps: Sequence[Step], budget: Budget, least_steps: int = 0) -> bool:
    """Whether the step time has stopped falling: later against earlier half of the recent steps, by medians.

    Only a fall counts as warming up; what the noise of the steps themselves explains does not. ``least_steps``: fewer
    steps than these are never steady.
    """
    times = step_times_s(steps)
    if len(times) < max(budget.warmup_steps, least_steps) or sum(row.w for row in steps) / 1e9 < budget.warmup_least_s:
        return False
    recent = times[-RECENT:]
    half = len(recent) // 2
    early, late = recent[:half], recent[half:]
    before, after = statistics.median(early), statistics.median(late)
    spread = statistics.median(abs(t - after) for t in late)
    noise = 2.5 * spread / max(1, len(late)) ** 0.5
    return bool(before - after <= max(TREND_FRAC * after, noise))


def turn_s(step_s: float, drop: int, budget: Budget) -> float:
    """How long a turn lasts: the shortest window plus the steps that are dropped, and one that a freeze cuts."""
    return max(budget.window_s + (drop + 1) * step_s, (budget.window_steps + drop + 2) * step_s)


def turn_steps(step_s: float, budget: Budget) -> int:
    """Steps that the window of a turn holds: those of its time, and no fewer than the fewest that count."""
    return max(budget.window_steps, int(budget.window_s / step_s) if step_s > 0.0 else 0)


def pace_s(steps: Sequence[Step], thaws: Sequence[int]) -> float:
    """Seconds that a step is likely to take: the mean where that is more than the median, so that a turn takes no
    longer than its time. ``thaws``: when the arm was thawed (monotonic nanoseconds); the steps that it was frozen in
    say nothing.
    """
    recent = [row for row in steps[-RECENT:] if not any(row.t < thaw <= row.t + row.w for thaw in thaws)]
    mean_s = sum(row.w for row in recent) / max(1, sum(row.n for row in recent)) / 1e9
    return max(mean_s, typical_step_s(steps))


def mean_turn_s(step_s: float, budget: Budget) -> float:
    """The same on average: an arm's turns come in twos, and steps are dropped after a thaw alone."""
    return statistics.mean(turn_s(step_s, drop, budget) for drop in (0, budget.drop_steps))


def order(turn: int, candidate_first: bool = False) -> str:
    """Whose turn it is: baseline, candidate, candidate, baseline, ... so that a linear drift cancels."""
    return "baseline" if (turn % 4 in (0, 3)) is not candidate_first else "candidate"


def counted_pairs(windows: Sequence[Window]) -> int:
    """Windows that count in the arm that has fewer."""
    counts = {"baseline": 0, "candidate": 0}
    for window in windows:
        if window.dropped is None:
            counts[window.arm] += 1
    return min(counts.values())


def words_on_counted(windows: Sequence[Window]) -> str:
    """``only 1 pair of windows counted``, ``no pair …``."""
    pairs = counted_pairs(windows)
    many = f"only {pairs} pair{'' if pairs == 1 else 's'}" if pairs else "no pair"
    return f"{many} {TOO_FEW}"


def bearable_load(loads: Sequence[tuple[str, float]], pairs: int) -> float | None:
    """Least neighbour load (cores) to let pass, so that ``pairs`` windows of each arm count; None: too few windows.

    ``loads``: (arm, cores that others took) of each window.
    """
    worst = []
    for arm in ("baseline", "candidate"):
        own = sorted(load for name, load in loads if name == arm)
        if len(own) < pairs:
            return None
        worst.append(own[pairs - 1])
    return max(worst)


def enough(interval: Interval | None, before: Interval | None, pairs: int, budget: Budget) -> bool:
    """Whether the interval settles the matter.

    It is narrow enough, or it lies clear of 1 at two looks in a row (one look alone would be fooled too often), or
    going on is futile.
    """
    if interval is None or pairs < budget.min_pairs or not budget.stop_early:
        return False
    if interval.ratio > 0 and (interval.high - interval.low) / 2 / interval.ratio <= budget.precision:
        return True
    if before is None:
        return False
    if pairs >= budget.futile_pairs and max(interval.ratio, before.ratio) < 1.0:
        return True  # stopping here can only miss a small gain: it claims nothing
    faster = min(interval.low, before.low) > 1 + budget.epsilon
    slower = max(interval.high, before.high) < 1
    return faster or slower


def worth_more_time(interval: Interval | None, budget: Budget) -> bool:
    """Whether a gain that looks worth having is still uncertain, on a noisy machine say."""
    if interval is None or not budget.stop_early:
        return False
    return interval.ratio > budget.promising and interval.low <= 1 + budget.epsilon
