"""The trial of one lever: kept where it pays, put back where not, tried again later where noise left it open."""

from __future__ import annotations

from hotlap.lap.baseline import Baseline, check_baseline
from hotlap.lap.best_guess import is_worth_a_proof
from hotlap.lap.caches import (
    HERE,
    REPLAY_BATCHES,
    WHOLE,
    loaded_here,
    may_take_workers,
    needs_replay,
    relieved,
    warm_steps,
    ways,
)
from hotlap.lap.earned_back import earned_back
from hotlap.lap.headroom import too_full
from hotlap.lap.incumbent import Guess, Search, Undecided, is_here, keep, load_here
from hotlap.lap.knobs import keep_move
from hotlap.lap.measure import Question, measure
from hotlap.lap.session import Session
from hotlap.lap.without import try_without
from hotlap.plan.choose import choose
from hotlap.plan.match import Candidate, as_move, canonical
from hotlap.records.plan import Move
from hotlap.records.trials import OF_BASELINE, TOO_FEW, LeverResult, Trial
from hotlap.report import units
from hotlap.trial.budget import Budget

__all__ = ["try_lever"]

PROMISING = Budget.promising
WIDE = 1.15
"""An undecided trial is repeated when its interval is wider than this factor, and its ratio or upper end promising."""


def try_lever(session: Session, baseline: Baseline, state: Search, candidate: Candidate, most_s: float) -> None:
    """One trial of at most ``most_s`` seconds, beside what was kept; of a cache of samples a second one where the first
    did not pay: samples from memory may be loaded best by the training itself, or by its workers."""
    key = (candidate.lever, canonical(candidate.setting))
    state.tried.add(key)
    may = may_take_workers(session.options)
    found = ways(state.moves, as_move(candidate), baseline.findings, may)
    told: list[tuple[Trial, LeverResult]] = []
    for moves in found:
        told.append(_trial(session, baseline, state, candidate, moves, most_s))
        trial, result = told[-1]
        if result.kept or session.left_s(state.until) < most_s / 3:
            break
        if moves is not found[-1]:
            how = "loaded by the training itself" if candidate.lever == WHOLE else "beside the step"
            session.listener.line(f"  {candidate.lever}, {how}  {result.reason}")
    if not result.kept:
        way = max(range(len(told)), key=lambda n: _ratio(told[n][0]))
        trial, result = told[way]
    if not result.kept and _undecided(trial, candidate) and key not in state.undecided:
        state.undecided[key] = Undecided(result, way)  # noise decided: once more, when the others have been tried
        state.tried.discard(key)
        session.listener.line(f"  {candidate.lever}  undecided for now: {result.reason}")
        return
    state.results.append(result)
    session.listener.line(_told(result))
    here = loaded_here(state.moves, baseline.findings, may) if result.kept and moves is found[0] else None
    seconds = min(most_s, session.left_s(state.until))
    if len(found) > 1 and here is not None and seconds >= most_s / 3:
        feeder = relieved(state.moves, candidate.lever) or HERE
        try_without(session, baseline, state, feeder, seconds, f"it paid, and with {candidate.lever}", here)


def _trial(
    session: Session, baseline: Baseline, state: Search, candidate: Candidate, moves: list[Move], most_s: float
) -> tuple[Trial, LeverResult]:
    """Of the plan ``moves``, which is the plan so far from then on where it pays."""
    replay = REPLAY_BATCHES if state.replayed or needs_replay(candidate.lever, state.findings) else 0
    on_trial = None if candidate.is_knob else candidate.lever
    arm = session.arm(candidate.lever.replace(":", "-"), moves=moves, replay_batches=replay, on_trial=on_trial)
    session.stage = f"try {candidate.lever}"
    question = Question(
        candidate.lever,
        min(most_s, session.left_s(state.until)),
        candidate.setting,
        startup_s=candidate.gain.startup_s,
        warm_steps=0 if replay else warm_steps(moves, state.findings),
        per_sample=candidate.is_knob,
    )
    trial = measure(session, state.incumbent, arm, question)
    state.trials.append(trial)
    _check_first(state, question, trial)
    choice = choose(trial)
    full = too_full(session, state.incumbent, arm)
    against = full if is_here(state, moves, arm) else "the script's loader keeps its workers"
    kept = choice.kept and against is None
    reason = f"{choice.reason}, but {against}" if choice.kept and against else choice.reason
    if kept:
        assert trial.interval is not None
        ratio = trial.interval.ratio
        state.notes += earned_back(candidate.lever, arm, trial) if candidate.gain.startup_s else []
        load_here(state, moves, f"it paid, and {candidate.lever} in its place is {units.ratio(ratio)} as fast")
        before = [*moves[:-1], *(m for m in state.moves if m.lever == moves[-1].lever)]
        keep(session, baseline, state, arm, keep_move(before, state.results, moves[-1], trial.interval))
        state.cumulative *= ratio
        state.replayed = bool(replay)
    else:
        session.discard(arm)
    base = baseline.findings.throughput.samples_per_s
    result = LeverResult(
        id=candidate.lever,
        setting=candidate.setting,
        preserves=candidate.preserves,
        predicted=None if candidate.is_knob else candidate.predicted,
        measured=trial.interval,
        kept=kept,
        reason=reason,
        samples_per_s=None if base is None else base * state.cumulative,
        cumulative=state.cumulative if kept else None,
    )
    alone = not (state.moves or candidate.is_knob or full or HERE in moves)
    if alone and trial.interval is not None and is_worth_a_proof(trial):
        state.guesses.append(Guess(moves, trial.interval, [result], bool(replay)))
    return trial, result


def _check_first(state: Search, question: Question, trial: Trial) -> None:
    """As long as nothing has been measured: raises Unmeasurable where the script itself is too short."""
    its_own = question.warm_steps and not trial.reason.startswith(OF_BASELINE)  # a cache needs more steps
    if not its_own and not any(result.measured for result in state.results):
        check_baseline(trial)


def _ratio(trial: Trial) -> float:
    return trial.interval.ratio if trial.interval is not None else 0.0


def _undecided(trial: Trial, candidate: Candidate) -> bool:
    """Whether the trial was too noisy to tell a gain worth having from none, or the gain that was promised."""
    found = trial.interval
    if found is None:
        return trial.status == "failed" and TOO_FEW in trial.reason
    promised = not candidate.is_knob and found.ratio >= 1.0 and found.high >= candidate.predicted > PROMISING
    return (found.ratio > PROMISING or promised) and found.low <= PROMISING and found.high / found.low > WIDE


def _told(result: LeverResult) -> str:
    """One line on a tried lever."""
    if result.kept and result.measured is not None:
        return f"+ {result.id}  {units.ratio(result.measured.ratio)}  ({units.ratio(result.cumulative)} in all)"
    return f"  {result.id}  {result.reason}"
