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
from itertools import pairwise

from hotlap.records.rows import Event, Step

__all__ = ["rates_per_sample"]


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


def _positions(events: Sequence[Event], steps: Sequence[Step], kind: str) -> list[int]:
    """Samples trained on before each event (the very first epoch's start is no event of a cadence)."""
    ends, before = [], [0]
    for row in steps:
        ends.append(row.t + row.w)
        before.append(before[-1] + row.s)
    return [before[bisect_right(ends, e.t)] for e in events if e.kind == kind and (e.i > 0 or kind != "loader_start")]


def _rate(positions: Sequence[int], total: int) -> float | None:
    """Events per sample from the first on, in ``total`` samples; None with fewer than two, or all at one place."""
    if len(positions) < 2 or positions[-1] <= positions[0]:
        return None
    if total - positions[-1] > max(b - a for a, b in pairwise(positions)):
        return len(positions) / (total - positions[0])
    return (len(positions) - 1) / (positions[-1] - positions[0])
