"""How often periodic work comes round, per sample, in arms that may differ in it. Pure.

Such work comes after a fixed number of samples, so the events that an arm has met tell its cadence from two on: the
samples between the first and the last. Where none has come for longer than ever between two (a save of the best weights
so far), the samples since the last count as well. With fewer than two, only bounds are known: ``n`` events in ``N``
samples mean a rate between ``n / N`` and ``(n + 1) / N``. The baseline is given the lower one and the candidate the
higher, so that a speedup is never won by not having looked long enough; but a candidate is not taken to do it more
often than the baseline does, unless it was seen to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from hotlap.records.rows import Event, Step

__all__ = ["OPEN", "OTHER", "SAME", "Cadence", "cadences", "rates_per_sample"]

SAME, OPEN, OTHER = 0.0, 0.5, 1.0
"""Whether two arms do a kind of work equally often: at the same steps, not known, or plainly not."""
SAME_GAP_FRAC = 0.01
"""Regular gaps between events that differ by less than this part are one cadence."""


@dataclass(frozen=True)
class Cadence:
    """How often one kind of periodic work comes in either arm."""

    per_step: dict[str, float]
    """Events per step of each arm, as it was seen in that arm; 0.0: never."""
    apart: float
    """``SAME``, ``OPEN`` or ``OTHER``."""


def rates_per_sample(
    events: Mapping[str, Sequence[Event]], steps: Mapping[str, Sequence[Step]], kinds: Mapping[str, str]
) -> dict[str, dict[str, float]]:
    """Per arm and kind: events per sample. ``kinds``: event kinds and what to call them. Empty: samples are unknown."""
    if any(not rows or any(row.s <= 0 for row in rows) for rows in steps.values()):
        return {}
    found: dict[str, dict[str, float]] = {arm: {} for arm in steps}
    for kind, name in kinds.items():
        seen = {arm: _positions(events[arm], steps[arm], kind) for arm in steps}
        if not any(seen.values()):
            continue
        total = {arm: sum(row.s for row in rows) for arm, rows in steps.items()}
        usual = _rate(seen["baseline"], total["baseline"]) or len(seen["baseline"]) / total["baseline"]
        few = len(seen["candidate"])
        bound = min((few + 1) / total["candidate"], max(usual, few / total["candidate"]))
        found["baseline"][name] = usual
        found["candidate"][name] = _rate(seen["candidate"], total["candidate"]) or bound
    return found


def cadences(
    events: Mapping[str, Sequence[Event]], steps: Mapping[str, Sequence[Step]], kinds: Mapping[str, str]
) -> dict[str, Cadence]:
    """Each arm by itself, for arms whose scripts may differ: by kind of work that either of them has done.

    Arms that do it equally often do it at the same steps, as far as both have come. With one event more or fewer it may
    be chance (a cadence of time, a save of the best), with twice as many, or regular gaps of another length, it is not.
    """
    found = {}
    arms = list(steps)
    total = {arm: sum(row.n for row in steps[arm]) for arm in arms}
    slack = max((row.n for rows in steps.values() for row in rows), default=1)
    for kind, name in kinds.items():
        at = {arm: _positions(events[arm], steps[arm], kind, in_steps=True) for arm in arms}
        if any(at.values()) and all(total.values()):
            rates = {arm: _rate(at[arm], total[arm]) or len(at[arm]) / total[arm] for arm in arms}
            found[name] = Cadence(rates, _apart(at[arms[0]], at[arms[1]], min(total.values()), slack))
    return found


def _apart(one: list[int], other: list[int], common: int, slack: int) -> float:
    """``common``: the steps that both have made; ``slack``: steps within which two events are at the same place."""
    fewer, more = sorted(([at for at in arm if at < common] for arm in (one, other)), key=len)
    alike = len(fewer) == len(more) and all(abs(a - b) <= slack for a, b in zip(fewer, more, strict=True))
    if one and other and alike:
        return SAME
    gap, other_gap = _regular_gap(one, slack), _regular_gap(other, slack)
    regular = gap is not None and other_gap is not None and abs(gap - other_gap) > SAME_GAP_FRAC * min(gap, other_gap)
    return OTHER if regular or len(more) >= 2 * len(fewer) + 2 else OPEN


def _regular_gap(at: list[int], slack: int) -> float | None:
    """Steps from one event to the next where these are always as many; None with fewer than three events."""
    gaps = [b - a for a, b in pairwise(at)]
    if len(gaps) < 2 or max(gaps) - min(gaps) > 2 * slack or median(gaps) <= 0:
        return None
    return (at[-1] - at[0]) / len(gaps)


def _positions(events: Sequence[Event], steps: Sequence[Step], kind: str, in_steps: bool = False) -> list[int]:
    """Samples (or steps) trained on before each event (the very first epoch's start is no event of a cadence)."""
    ends, before = [], [0]
    for row in steps:
        ends.append(row.t + row.w)
        before.append(before[-1] + (row.n if in_steps else row.s))
    return [before[bisect_right(ends, e.t)] for e in events if e.kind == kind and (e.i > 0 or kind != "loader_start")]


def _rate(positions: Sequence[int], total: int) -> float | None:
    """Events per sample from the first on, in ``total`` samples; None with fewer than two, or all at one place."""
    if len(positions) < 2 or positions[-1] <= positions[0]:
        return None
    if total - positions[-1] > max(b - a for a, b in pairwise(positions)):
        return len(positions) / (total - positions[0])
    return (len(positions) - 1) / (positions[-1] - positions[0])
