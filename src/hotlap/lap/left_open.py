"""What noise left open, looked at again: all of it in one trial.

On a noisy machine the gain of a lever may be real and yet too small for its own trial to be certain of. That of several
together is larger, and so is told from the same noise, in the time of one trial.
"""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.lap.baseline import Baseline
from hotlap.lap.caches import FEEDERS, is_of_samples, may_take_workers, ways
from hotlap.lap.incumbent import Search
from hotlap.lap.session import Session, waits_for
from hotlap.lever.registry import levers
from hotlap.plan.match import Candidate, as_move, blocked, canonical
from hotlap.records.plan import Move

__all__ = ["left_open", "plan_with"]


def left_open(state: Search, found: Sequence[Candidate]) -> list[Candidate]:
    """Those of ``found`` that a first trial saw gain, though not certainly, the largest gain first: none where fewer
    than two can be on together, or where they have been. Levers that wait for validation or a checkpoint are no part
    of it, nor are knobs: they are the user's."""
    if state.looked_again:
        return []
    seen = [(first, c) for c in found if (first := state.undecided.get((c.lever, canonical(c.setting)))) is not None]
    measured = [(first.result.measured, c) for first, c in seen if first.result.measured is not None]
    able: list[Candidate] = []
    moves = list(state.moves)
    cached = any(is_of_samples(c.lever) for _, c in measured)
    for _, c in sorted(measured, key=lambda one: -one[0].ratio):
        if cached and c.lever in FEEDERS:
            continue  # the cache may take its place
        if not (c.is_knob or waits_for(c.lever)) and blocked(levers()[c.lever], moves) is None:
            able.append(c)
            moves.append(as_move(c))
    return able if len(able) > 1 else []


def plan_with(session: Session, baseline: Baseline, state: Search, candidates: Sequence[Candidate]) -> list[Move]:
    """The plan so far and ``candidates``, a cache of samples in the way that it did best in: its samples loaded beside
    the step, or by the training itself."""
    moves = list(state.moves)
    for c in candidates:
        found = ways(moves, as_move(c), baseline.findings, may_take_workers(session.options))
        moves = found[min(state.undecided[c.lever, canonical(c.setting)].way, len(found) - 1)]
    return moves
