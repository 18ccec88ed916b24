"""Whether a run has gone as far as was asked: so many steps, so many epochs, a loss. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.records.rows import Event, Step
from hotlap.records.seed_proof import Stop

__all__ = ["REACHED_OVER", "epochs_begun", "reached_at", "stops_at"]

REACHED_OVER = 10
"""Steps whose mean loss has to be at or below a target: a single lucky batch reaches nothing."""


def reached_at(steps: Sequence[Step], target: float) -> int | None:
    """Index of the row at which the mean loss of the last rows is at or below ``target`` for the first time."""
    total, recent = 0.0, list[float]()
    for index, row in enumerate(steps):
        value = row.l[-1] if row.l else None
        if value is None:
            total, recent = 0.0, []
            continue
        recent.append(value)
        total += value
        if len(recent) > REACHED_OVER:
            total -= recent[-REACHED_OVER - 1]
        if len(recent) >= REACHED_OVER and total <= target * REACHED_OVER:
            return index
    return None


def stops_at(stop: Stop, steps: Sequence[Step], events: Sequence[Event]) -> int | None:
    """How many of the rows belong to the run that was asked for; None: it has not come to its stop."""
    ends: list[int] = []
    if stop.steps is not None:
        ends += [n + 1 for n, row in enumerate(steps) if row.i + row.n >= stop.steps][:1]
    if stop.epochs is not None:
        starts = _epochs(events)
        if len(starts) >= stop.epochs:
            last = starts[stop.epochs - 1]  # the step in which the next epoch began is the next epoch's
            ends.append(sum(1 for row in steps if row.i < last))
    if stop.loss is not None:
        at = reached_at(steps, stop.loss)
        ends += [] if at is None else [at + 1]
    return min(ends, default=None)


def epochs_begun(events: Sequence[Event]) -> int:
    """How many epochs have begun, the first one too; 0 where no loader was seen."""
    return 1 + len(_epochs(events)) if any(e.kind == "loader_start" for e in events) else 0


def _epochs(events: Sequence[Event]) -> list[int]:
    """The steps in which the second, third, ... epoch begins: starts of the training loader.

    Of several that feed the loop side by side, the one that goes round least often: the others are there to be cycled.
    """
    starts = [(e.i, e.d.get("loader")) for e in events if e.kind == "loader_start"]
    rounds: dict[float | None, list[int]] = {number: [] for i, number in starts if i == 0}
    later = sorted({start for start in starts if start[0] > 0}, key=lambda start: start[0])
    if len(rounds) < 2 or any(number not in rounds for _, number in later):  # one is of another number when made anew
        return sorted({i for i, _ in later})
    for i, number in later:
        rounds[number].append(i)
    return min(rounds.values(), key=len)
