"""Where start-up ends: leading steps are dropped until the step time is steady."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from hotlap.diagnose.phases import core_ns
from hotlap.diagnose.policy import Policy
from hotlap.records.rows import Step

__all__ = ["Steady", "find_steady"]


@dataclass(frozen=True)
class Steady:
    """The rows that count, and how many steps before them did not."""

    rows: list[Step]
    warmup_steps: int

    @property
    def steps(self) -> int:
        """Steps in the steady rows."""
        return sum(row.n for row in self.rows)


def find_steady(rows: list[Step], phases: list[str], policy: Policy) -> Steady:
    """Drop start-up rows. The first row goes too when it is a single step (imports and allocations land in it).

    A row's step time leaves out validation, checkpoints and epoch starts, so periodic work never looks like warm-up.
    Slower leading rows go while they exceed the later half's median by both limits of the policy, up to its
    ``warmup_limit_frac`` of the rows; a longer slow stretch is drift, and only the first step goes.
    """
    rows = [row for row in rows if row.n > 0 and row.w > 0]
    if len(rows) < 2:
        return Steady(rows, 0)
    times = [core / row.n for core, row in zip(core_ns(rows, phases), rows, strict=True)]
    later = times[len(times) // 2 :]
    centre = median(later)
    scatter = median(abs(t - centre) for t in later)
    limit = centre + max(policy.warmup_mads * scatter, policy.warmup_slower_frac * centre)
    first = 1 if rows[0].n == 1 else 0
    last = max(first, int(len(rows) * policy.warmup_limit_frac))
    start = first
    while start < last and median(times[start : start + policy.warmup_window]) > limit:
        start += 1
    while start < last and times[start] > limit:  # the last slow ones, behind which the window is quick already
        start += 1
    if start == last and last > first and median(times[start : start + policy.warmup_window]) > limit:
        start = first
    return Steady(rows[start:], sum(row.n for row in rows[:start]))
