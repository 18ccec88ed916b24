"""Where a search could not tell: what promised most is put to the proof, whose many launches see what one trial cannot.

A trial of a search has one pair of launches; on a noisy machine its interval may reach from no gain to a gain of half,
for every lever. To end there would leave a user with nothing, though the proof, which is made anyway where something
was kept, could decide. It claims as rarely what is not there (bench/power.py counts proofs alone, too).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hotlap.lap.baseline import Baseline
from hotlap.lap.caches import REPLAY_BATCHES
from hotlap.lap.incumbent import Guess, Search
from hotlap.lap.session import Session
from hotlap.lap.slow_steps import holds_a_proof, proof_budget_s
from hotlap.records.trials import Trial
from hotlap.report import units

__all__ = ["is_worth_a_proof", "prove_best", "put_back"]

LEAST = 1.05
"""Ratio of a guess that is worth a proof of minutes."""


def is_worth_a_proof(trial: Trial) -> bool:
    """Whether a trial that was not certain promises enough for it."""
    return trial.interval is not None and trial.interval.ratio >= LEAST


def prove_best(session: Session, baseline: Baseline, state: Search) -> None:
    """The plan is what promised most; nothing where nothing did, or where no time is left for as many launches as a
    claim needs."""
    if state.moves or not state.guesses:
        return
    best = _best(state.guesses)
    if not holds_a_proof(session, baseline):
        found = units.ratio_interval(best.interval.ratio, best.interval.low, best.interval.high)
        state.notes.append(
            "The search was certain of nothing, and no time was left for a proof of what promised most, "
            f"{', '.join(move.lever for move in best.moves)} at {found}: try about "
            f"--budget {math.ceil(proof_budget_s(session, baseline) / 60)}m."
        )
        return
    state.moves, state.replayed, state.guessed = best.moves, best.replayed, True
    state.cumulative = best.interval.ratio
    replay = REPLAY_BATCHES if best.replayed else 0
    state.incumbent = session.arm("best-guess", moves=best.moves, replay_batches=replay)
    names = [move.lever for move in best.moves]
    found = units.ratio_interval(best.interval.ratio, best.interval.low, best.interval.high)
    seen = found if len(names) == 1 else f"{len(names)} levers together {found}"
    state.results = [r for r in state.results if r.id not in names]
    base, reason = baseline.findings.throughput.samples_per_s, f"{seen} in the search, not certain: put to the proof"
    state.results += [replace(r, kept=True, samples_per_s=None, reason=reason) for r in best.results]
    per_s = None if base is None else base * best.interval.ratio
    state.results[-1] = replace(state.results[-1], samples_per_s=per_s, cumulative=best.interval.ratio)
    session.listener.line(f"? {', '.join(names)}  {seen}: put to the proof")
    state.notes.append(
        f"The search was certain of nothing: the proof was made of what promised most, {', '.join(names)}."
    )


def _best(guesses: Sequence[Guess]) -> Guess:
    """What promised most, by the lower end of its interval; or more levers, with it among them, that promised no less:
    their larger gain is easier to tell from noise, which their one trial may have had more of."""
    best = max(guesses, key=lambda guess: guess.interval.low)
    wider = [g for g in guesses if _levers(g) > _levers(best) and g.interval.ratio >= best.interval.ratio]
    return max(wider, key=lambda guess: guess.interval.ratio, default=best)


def _levers(guess: Guess) -> set[str]:
    return {move.lever for move in guess.moves}


def put_back(state: Search) -> None:
    """The proof claims nothing: nothing of a guess is kept."""
    if not state.guessed:
        return
    for number, result in enumerate(state.results):
        if result.kept:
            reason = f"{result.reason}, of which no plan came"
            state.results[number] = replace(result, kept=False, cumulative=None, reason=reason)
