"""Several levers in one trial, where a script starts too slowly for one trial each.

A trial of a lever takes the start of a process and its warm-up before the first window. Where the budget holds fewer of
these than there are levers that promise something, most would never be tried; and the gain of all of them together is
easier to tell from noise than that of each. What no lever of the lot is to be thanked for alone, the result says; with
the time that is left, one after the other is taken away again, to see whether it is missed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from hotlap.lap.baseline import Baseline
from hotlap.lap.best_guess import is_worth_a_proof
from hotlap.lap.caches import HERE, REPLAY_BATCHES, WHOLE, needs_replay, relieved, warm_steps
from hotlap.lap.headroom import too_full
from hotlap.lap.incumbent import Guess, Search, is_here, keep, load_here
from hotlap.lap.measure import Question, measure
from hotlap.lap.one_at_a_time import launches_per_trial
from hotlap.lap.session import Session, waits_for
from hotlap.lap.slow_steps import least_trial_s
from hotlap.lever.registry import levers
from hotlap.plan.choose import Choice, choose
from hotlap.plan.match import Candidate, as_move, blocked, canonical
from hotlap.records.plan import Move
from hotlap.records.trials import Interval, LeverResult, Trial
from hotlap.report import units
from hotlap.trial.arm import Arm
from hotlap.trial.marks import last_words, refusal, took_hold

__all__ = ["expected_trial_s", "few_trials", "is_doubtful", "least_of_lot", "lot", "try_together"]

FEW = 4
"""With so many trials, one by one is the better way: each lever is measured by itself."""
WARM_UP_S = 3.0
"""Warm-up of an arm in a search, as a rule."""


def few_trials(
    session: Session, baseline: Baseline, state: Search, wanted: Sequence[Candidate], measure_s: float
) -> bool:
    """Whether the budget holds too few trials for the levers that are wanted, one by one. Slow steps make each longer,
    and so does a cache: once it is kept, every trial waits until it is warm."""
    each_s = expected_trial_s(session, baseline, state, wanted, measure_s)
    return int(session.left_s(state.until) / each_s) < min(FEW, len(wanted))


def expected_trial_s(
    session: Session, baseline: Baseline, state: Search, wanted: Sequence[Candidate], measure_s: float
) -> float:
    """What a trial takes, where the caches of the plan so far and of what is wanted are warmed first."""
    moves = [*state.moves, *(as_move(c) for c in wanted)]
    caches_s = warm_steps(moves, state.findings) * state.findings.throughput.step_s
    starts_s = (2 * launches_per_trial(session) - 1) * (baseline.start_s + WARM_UP_S)
    return max(starts_s + measure_s, least_trial_s(session, baseline)) + caches_s


def lot(candidates: Sequence[Candidate]) -> list[Candidate]:
    """What can be on together, best first: no knobs (they are the user's), nothing that conflicts with one before it,
    nothing whose start takes longer than the trial saves, nothing that waits for validation or a checkpoint."""
    found: list[Candidate] = []
    moves: list[Move] = []
    for candidate in candidates:
        if candidate.is_knob or candidate.gain.startup_s or candidate.lever == WHOLE or waits_for(candidate.lever):
            continue
        if blocked(levers()[candidate.lever], moves) is None:
            found.append(candidate)
            moves.append(as_move(candidate))
    return found


def try_together(
    session: Session,
    baseline: Baseline,
    state: Search,
    candidates: Sequence[Candidate],
    seconds: float,
    plan: Sequence[Move] | None = None,
) -> None:
    """One trial of all ``candidates``. Those that took hold are kept where it paid; else all are left to be tried one
    by one. ``plan``: the plan so far with theirs in it, where they were tried by themselves before (lap/left_open)."""
    moves = list(plan) if plan is not None else [*state.moves, *(as_move(c) for c in candidates)]
    arm, trial, replayed = _trial_of_all(session, state, candidates, moves, seconds)
    choice, held = choose(trial), took_hold(arm)
    kept = [c for c in candidates if c.lever in held]
    found = [m for m in moves if m.lever in {c.lever for c in kept} or m in state.moves or m is HERE]
    against = too_full(session, state.incumbent, arm)
    by_cache = HERE.lever not in {c.lever for c in candidates}  # else its own result tells whether the workers went
    if by_cache and not is_here(state, moves, arm):
        against = "the script's loader keeps its workers"
    if trial.interval is None or not kept or against is not None:
        session.discard(arm)
        session.listener.line(f"  together: {against or choice.reason}; they are tried one by one")
        return
    factor = state.cumulative * trial.interval.ratio
    alone = "measured" if plan is None else "certain"
    results = _results(kept, choice, trial.interval, baseline, factor, alone)
    if not choice.kept:
        session.discard(arm)
        if is_worth_a_proof(trial) and not state.moves:
            state.guesses.append(Guess(found, trial.interval, results, replayed))
        session.listener.line(f"  together: {choice.reason}; they are tried one by one")
        return
    state.tried |= {(c.lever, canonical(c.setting)) for c in kept}
    state.cumulative = factor
    state.replayed = replayed
    if by_cache:
        load_here(state, moves, f"{_names(kept)} came in, and the step is {units.ratio(trial.interval.ratio)} as fast")
    state.results += results
    if len(kept) == 1:  # the trial was about it alone
        own = trial.interval
        found = [
            replace(m, gain=own.ratio, low=own.low, high=own.high) if m.lever == kept[0].lever else m for m in found
        ]
    keep(session, baseline, state, arm, found)
    _tell_refused(state, trial, candidates, held, arm)
    session.listener.line(f"+ together  {units.ratio(trial.interval.ratio)}: {_names(kept)}")
    if len(kept) > 1 and plan is None:
        state.notes.append(
            f"{len(kept)} levers were tried in one trial, since the script takes {units.seconds(baseline.start_s)} to "
            "its first step: a larger --budget measures each by itself."
        )


def _trial_of_all(
    session: Session, state: Search, candidates: Sequence[Candidate], moves: list[Move], seconds: float
) -> tuple[Arm, Trial, bool]:
    """The arm of the plan ``moves``, its trial, and whether that repeats the first batches of an epoch."""
    wants_replay = any(needs_replay(c.lever, state.findings) for c in candidates)
    replay = REPLAY_BATCHES if state.replayed or wants_replay else 0
    arm = session.arm("together", moves=moves, replay_batches=replay)
    session.stage = f"try {len(candidates)} levers together"
    session.listener.line(f"  together: {_names(candidates)}")
    question = Question(
        "together",
        seconds,
        startup_s=sum(c.gain.startup_s for c in candidates),
        warm_steps=0 if replay else warm_steps(moves, state.findings),
    )
    trial = measure(session, state.incumbent, arm, question)
    state.trials.append(trial)
    return arm, trial, bool(replay)


def _names(candidates: Sequence[Candidate]) -> str:
    return ", ".join(c.lever for c in candidates)


def _tell_refused(
    state: Search, trial: Trial, candidates: Sequence[Candidate], held: Collection[str], arm: Arm
) -> None:
    """Those that said why they change nothing: by itself, each would say the same."""
    words = last_words(arm)
    for c in candidates:
        if c.lever not in held and c.lever in words:
            status, why = refusal(words[c.lever])
            told = choose(replace(trial, status=status, reason=why, interval=None))
            state.results.append(LeverResult(c.lever, c.setting, c.preserves, c.predicted, None, False, told.reason))
            state.tried.add((c.lever, canonical(c.setting)))


def _results(
    kept: Sequence[Candidate], choice: Choice, interval: Interval, baseline: Baseline, factor: float, none_was: str
) -> list[LeverResult]:
    """A line of the report for each: the gain of all stands at the last. ``none_was``: measured, certain."""
    alone = len(kept) == 1
    reason = choice.reason if alone else f"{len(kept)} levers together {choice.reason}: none was {none_was} by itself"
    base = baseline.findings.throughput.samples_per_s
    return [
        LeverResult(
            id=c.lever,
            setting=c.setting,
            preserves=c.preserves,
            predicted=c.predicted,
            measured=interval if alone else None,
            kept=choice.kept,
            reason=reason,
            samples_per_s=base * factor if base is not None and c is kept[-1] else None,
            cumulative=factor if c is kept[-1] else None,
        )
        for c in kept
    ]


def least_of_lot(state: Search) -> Move | None:
    """The move of the lot to doubt next, of those that are kept and were not taken away on trial: first those of
    :func:`is_doubtful`, then what promised least; never what promised most."""
    members = {m.lever: m for m in state.moves if m.gain is None}  # a move that was measured by itself has a gain
    kept = sorted((c for c in state.lot if c.lever in members), key=lambda c: c.predicted)[:-1]
    kept.sort(key=lambda c: not is_doubtful(state, members[c.lever]))
    return next((members[c.lever] for c in kept if c.lever not in state.doubted), None)


def is_doubtful(state: Search, move: Move) -> bool:
    """What computes in another type, which has to pay for that; and what does a sample's work beside the step, where a
    cache has taken that work away."""
    fed = any(relieved(state.moves, other.lever) is move for other in state.moves)
    return fed or "precision" in levers()[move.lever].TREATS
