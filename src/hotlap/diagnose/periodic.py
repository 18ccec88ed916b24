"""Work that comes every so many steps: its cost per step at the script's own cadence.

A short window holds 2.4 validations or none; counting what fell into it would misjudge their share by half.
So the cost of one is multiplied by the cadence seen between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

from hotlap.diagnose.phases import mean_s, phase_ns
from hotlap.records.rows import Event, Step

__all__ = ["Periodic", "cadence", "epoch_starts", "phase_work"]


@dataclass(frozen=True)
class Periodic:
    """``each_s`` seconds each, every ``every`` steps (None: not known), seen ``count`` times."""

    each_s: float = 0.0
    every: float | None = None
    count: int = 0
    per_step_s: float = 0.0


def cadence(at: list[int], n_steps: int) -> float | None:
    """Steps between occurrences at the step indices ``at`` of a run of ``n_steps``; None when none was seen.

    Their mean: they need not come evenly (after a number of steps and after each epoch). Where none has come for longer
    than ever between two (a save of the best weights so far), what has passed since the last counts as well. A single
    one bounds the cadence from both sides: it did not come before, and did not come again.
    """
    places = sorted(set(at))
    if not places:
        return None
    if len(places) == 1:
        return float(max(places[0], n_steps - places[0], 1))
    first, last = places[0], places[-1]
    if n_steps - last > max(b - a for a, b in pairwise(places)):
        return (n_steps - first) / len(places)
    return (last - first) / (len(places) - 1)


def phase_work(
    phase: str, rows: list[Step], steady: list[Step], events: list[Event], phases: list[str]
) -> Periodic | None:
    """Validation or checkpoint: what one costs and how often it comes. None when the phase was not measured.

    What happened before the first step (a sanity validation) is start-up and does not count. Nor does what came right
    after it and never again: a loop that counts from 0 does so at once what it does every 500 steps (``step % 500 ==
    0``), and how often that is has not been seen.
    """
    flat = mean_s(steady, phase, phases)
    if flat is None:
        return None
    at = [event.i for event in events if event.kind == phase and event.i > 0]
    counted = [row for row in rows if row.i + row.n - 1 > 0]
    total_s = sum(phase_ns(row, phase, phases) or 0 for row in counted) / 1e9
    places = len(set(at))
    every = cadence(at, sum(row.n for row in rows))
    in_rows = len({i for i in at if i < rows[-1].i + rows[-1].n})  # what follows the last step is in no row
    if every is None or total_s <= 0.0 or not in_rows:
        return Periodic(per_step_s=flat)
    each_s = total_s / in_rows
    if set(at) == {1}:
        return Periodic(each_s, None, 1, 0.0)
    return Periodic(each_s, every, places, each_s / every)


def epoch_starts(rows: list[Step], steps_per_epoch: float | None) -> Periodic:
    """Starting an epoch's iterator. The first start of the run counts only when no later one was seen (it is cold)."""
    at = [row.i for row in rows if row.lo_n > 0]
    started = [row.lo_n for row in rows if row.lo_n > 0]
    starts = sum(started)
    if not at:
        return Periodic()
    later = [row for row in rows[1:] if row.lo_n > 0]
    used = later or [row for row in rows if row.lo_n > 0]
    each_s = mean(max(0, row.lo) / row.lo_n for row in used) / 1e9
    if starts > 1:
        first, last = at[0], at[-1]
        span = sum(row.n for row in rows) if last == first else last - first
        opening = 0 if last == first else started[0]  # several loaders may be read at once
        every: float | None = max(1.0, span / (starts - opening))
    else:
        every = steps_per_epoch
    return Periodic(each_s, every, starts, each_s / every if every else 0.0)
