"""From step rows to windows: which steps of an arm's turn count, and what one steady step takes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from hotlap.records.rows import PHASES, Step
from hotlap.records.trials import Window

__all__ = ["Turn", "kept_steps", "openings", "steady_ns", "to_window", "whole_steps"]
SHORT_EPOCH = 4
"""Steps; where epochs are shorter, opening one is a part of every window."""

LEFT_OUT = (PHASES.index("validation"), PHASES.index("checkpoint"))


@dataclass(frozen=True)
class Turn:
    """One turn of an arm, as it was run. Times in monotonic nanoseconds."""

    arm: str
    begin: int
    end: int
    thawed: bool
    """Whether the arm had been frozen just before (the first steps are left out)."""
    neighbours: float | None = None
    """Cores that others took meanwhile; None: not known."""
    idle: float | None = None
    """Cores that nobody used."""


def steady_ns(row: Step) -> int:
    """Wall nanoseconds of a row without validation, checkpoints and the start of an epoch."""
    return max(0, row.w - sum(row.p[i] or 0 for i in LEFT_OUT) - row.lo)


def openings(steps: Sequence[Step]) -> list[Step]:
    """The rows of one step that an epoch begins with; none where epochs are shorter than ``SHORT_EPOCH`` steps.

    The loader's processes start and fill their queue beside such a step, so that it takes longer by more than the wait
    for its batch: the whole of it belongs to the start of the epoch (:mod:`hotlap.trial.periodic`), and not to a
    window, which may hold such a step or not.
    """
    found = [row for row in steps if row.n == 1 and row.lo_n]
    if not found or found[-1].i - found[0].i < SHORT_EPOCH * (len(found) - 1):  # the same however far the last one is
        return []
    return found


def whole_steps(steps: Sequence[Step], begin: int, end: int) -> list[Step]:
    """Rows that lie wholly inside [begin, end]."""
    found = []
    for row in reversed(steps):
        if row.t + row.w < begin:
            break
        if row.t >= begin and row.t + row.w <= end:
            found.append(row)
    return found[::-1]


def kept_steps(turn: Turn, steps: Sequence[Step], drop: int, opening: AbstractSet[int] = frozenset()) -> list[Step]:
    """The rows of a turn that count: neither those right after a thaw nor those, by their start, that open an epoch."""
    kept, passed = [], 0
    for row in whole_steps(steps, turn.begin, turn.end):
        if (not turn.thawed or passed >= drop) and row.t not in opening:
            kept.append(row)
        passed += row.n
    return kept


def to_window(
    turn: Turn, steps: Sequence[Step], drop: int, least: int, neighbour_cores: float, cycle: int = 1,
    opening: AbstractSet[int] = frozenset(),
) -> Window:  # fmt: skip
    """What a turn amounts to. ``drop``: steps left out after a thaw; fewer than ``least`` steps do not count.

    ``cycle``: whole multiples of so many steps count, the last ones beyond them are left out. ``opening``: starts of
    the rows that open an epoch, which do not count.
    """
    kept = kept_steps(turn, steps, drop, opening)
    count = sum(row.n for row in kept)
    while count > cycle and count % cycle:
        count -= kept.pop().n
    steady_s = sum(steady_ns(row) for row in kept) / count / 1e9 if count else 0.0
    why = None
    if count < least:
        why = f"too few steps ({count} of {least})"
    elif turn.neighbours is not None and turn.neighbours > neighbour_cores:
        spare = turn.idle or 0.0
        if spare < max(1.0, turn.neighbours):  # on a machine with cores to spare a neighbour takes none of ours
            why = f"neighbour load ({turn.neighbours:.2f} cores)"
    return Window(turn.arm, turn.begin, count, sum(row.s for row in kept), steady_s, why)
