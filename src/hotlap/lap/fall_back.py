"""The plan made the loss worse: the lever at fault goes, and what is left is proved."""

from __future__ import annotations

import math
from dataclasses import replace

from hotlap.lap.baseline import Baseline
from hotlap.lap.caches import REPLAY_BATCHES, holds_cache
from hotlap.lap.incumbent import Search
from hotlap.lap.session import Session
from hotlap.proof.curves import numbers
from hotlap.records.plan import Move
from hotlap.records.trials import Trial

__all__ = ["EXTRA_S", "fall_back", "suspect"]

EXTRA_S = 90.0
"""What the second proof may take beyond the budget: a launch of both arms, the roof, two launches more."""


def suspect(state: Search) -> Move | None:
    """The move whose own trial made the losses worst; None when each of them preserves bits, or is the user's goal."""
    able = [m for m in state.moves if m.preserves not in ("bits", "goal")]
    return max(able, key=lambda move: _worse_frac(state, move), default=None)


def _worse_frac(state: Search, move: Move) -> float:
    """By how much the mean loss was higher in the later half of the move's own trial, as a share of the baseline's."""
    trial = next((t for t in reversed(state.trials) if _is_of(t, move)), None)
    if trial is None:
        return 0.0
    base, other = (numbers(trial.losses.get(arm, [])) for arm in ("baseline", "candidate"))
    steps = min(len(base), len(other))
    later = slice(steps // 2, steps)
    scale = sum(map(abs, base[later]))
    if scale == 0.0:
        return 0.0
    found = (sum(other[later]) - sum(base[later])) / scale
    return found if not math.isnan(found) else math.inf


def _is_of(trial: Trial, move: Move) -> bool:
    return trial.id == move.lever and trial.setting == move.setting and trial.status == "measured"


def fall_back(session: Session, baseline: Baseline, state: Search) -> Move | None:
    """Put the lever at fault back, and make arms for another proof; the move, or None when there is none to blame.

    Without a move left there is nothing to prove, and no arms are made.
    """
    move = suspect(state)
    if move is None:
        return None
    state.moves = [m for m in state.moves if m is not move]
    state.replayed = state.replayed and holds_cache(state.moves)
    for number, result in enumerate(state.results):
        if result.kept and (result.id, result.setting) == (move.lever, move.setting):
            why = f"{result.reason}: the loss was worse with it in the proof, put back"
            state.results[number] = replace(result, kept=False, reason=why, cumulative=None)
            state.cumulative /= result.measured.ratio if result.measured is not None else 1.0
    session.listener.line(f"  {move.lever}  the loss was worse with it in the proof: put back")
    roof = baseline.findings.roof
    if roof is not None and move.lever in roof.levers:
        baseline.findings = replace(baseline.findings, roof=None)  # no roof of this training: it is measured again
    if state.moves:
        session.extra_s += EXTRA_S
        baseline.arm = session.arm("baseline-again")
        replay = REPLAY_BATCHES if state.replayed else 0
        state.incumbent = session.arm("plan-again", moves=state.moves, replay_batches=replay)
    return move
