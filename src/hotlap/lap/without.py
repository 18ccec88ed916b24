"""Taking one move of the plan away again: it stays away where the plan is faster without it.

A move that was measured by itself has earned its place, and leaves it for a certain gain alone. One that came in with
others has not: it goes where the plan is likelier faster without it.
"""

from __future__ import annotations

from dataclasses import replace

from hotlap.lap.baseline import Baseline
from hotlap.lap.caches import HERE, REPLAY_BATCHES, warm_steps
from hotlap.lap.incumbent import Search, give_way, is_here, keep, load_here
from hotlap.lap.measure import Question, measure
from hotlap.lap.session import Session
from hotlap.plan.choose import choose
from hotlap.records.plan import Move
from hotlap.report import units

__all__ = ["LIKELY", "try_without"]

LIKELY = 1.05
"""Times as fast without a move that was never measured by itself, from which on it goes, certain or not. Prior: half of
what a lever gives as a rule, so that a gain of its own is not thrown away for the noise of one trial."""


def try_without(
    session: Session,
    baseline: Baseline,
    state: Search,
    move: Move,
    seconds: float,
    since: str,
    without: list[Move] | None = None,
) -> None:
    """One trial of the plan without ``move`` (HERE: without the script's own workers). ``since``: what has happened
    since it came in, for the report; ``without``: the plan, where something else takes its place."""
    moves = [m for m in state.moves if m is not move] if without is None else without
    replay = REPLAY_BATCHES if state.replayed else 0
    session.stage = f"try without {move.lever}"
    arm = session.arm(f"without-{move.lever}", moves=moves, replay_batches=replay)
    warm = 0 if replay else warm_steps(moves, state.findings)
    trial = measure(session, state.incumbent, arm, Question(f"without-{move.lever}", seconds, warm_steps=warm))
    state.trials.append(trial)
    certain, found = choose(trial).kept, trial.interval
    unproved = move.gain is None and move is not HERE
    if found is None or not (certain or (unproved and found.ratio > LIKELY)) or not is_here(state, moves, arm):
        session.discard(arm)
        return
    faster = units.ratio(found.ratio)
    if certain:
        why = f"{since} the step is {faster} as fast without it"
        state.cumulative *= found.ratio
    else:
        why = f"{since} is likelier slower than faster: without it {faster} [{found.low:.2f}, {found.high:.2f}]"
    give_way(state, move, why)
    load_here(state, moves, why)
    keep(session, baseline, state, arm, moves)
    last = max((n for n, result in enumerate(state.results) if result.kept), default=None)
    if last is not None:  # the total stands at the last line that is kept
        base, total = baseline.findings.throughput.samples_per_s, state.cumulative
        per_s = None if base is None else base * total
        state.results[last] = replace(state.results[last], samples_per_s=per_s, cumulative=total)
    own = "+ loader-workers  {}: samples are loaded by the training itself"
    session.listener.line(own.format(faster) if move is HERE else f"  {move.lever}  {faster} without it: put back")
