"""Where start-up ends: leading steps are dropped until the step time is steady."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from hotlap.diagnose.phases import core_ns, phase_ns
from hotlap.diagnose.policy import Policy
from hotlap.records.rows import Step

__all__ = ["Steady", "find_steady", "set_aside"]

_COMPUTE = ("forward", "backward", "optimizer")
_ONCE_TIMES = 20.0
"""A step that takes as many times the median, and ..."""
_ONCE_SHARE = 0.1
"""... as large a part of all steps together, says how long a compilation takes, and nothing of steps."""
_ONCE_MOST = 2
"""More of them are how the script trains."""


@dataclass(frozen=True)
class Steady:
    """The rows that count, how many steps before them did not, and single ones among them that were set aside."""

    rows: list[Step]
    warmup_steps: int
    aside: tuple[Step, ...] = ()

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


def set_aside(steady: Steady, phases: list[str]) -> Steady:
    """Leave out what happened once in a short run: a step in which code was compiled, or an algorithm was looked for.

    Only single steps whose time went into compute, where it was measured: a pause elsewhere is the script's own, and
    its stacks name the line.
    """
    rows = steady.rows
    cores = core_ns(rows, phases)
    if not rows:
        return steady
    usual = median(core / row.n for core, row in zip(cores, rows, strict=True))
    limit = max(_ONCE_TIMES * usual, _ONCE_SHARE * sum(cores))
    found = [
        k
        for k, (core, row) in enumerate(zip(cores, rows, strict=True))
        if row.n == 1 and core > limit and _computes(row, core, phases)
    ]
    if not 0 < len(found) <= _ONCE_MOST or any(b - a == 1 for a, b in pairwise(found)):
        return steady
    kept = [row for k, row in enumerate(rows) if k not in found]
    return replace(steady, rows=kept, aside=tuple(rows[k] for k in found))


def _computes(row: Step, core: int, phases: list[str]) -> bool:
    """Whether compute took most of a step, or nobody measured what did."""
    measured = [value for phase in phases if (value := phase_ns(row, phase, phases)) is not None]
    return not measured or 2 * sum(phase_ns(row, phase, phases) or 0 for phase in _COMPUTE) > core
