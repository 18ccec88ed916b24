"""The plan so far and the arm that runs it: where a search stands, and how a measured move enters or leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hotlap.lap.baseline import Baseline, rediagnose
from hotlap.lap.caches import HERE
from hotlap.lap.headroom import no_room_beside
from hotlap.lap.session import Session
from hotlap.lever.registry import levers
from hotlap.plan.match import Candidate
from hotlap.records.findings import Findings
from hotlap.records.plan import Move
from hotlap.records.trials import Interval, LeverResult, Trial
from hotlap.trial.arm import Arm
from hotlap.trial.marks import took_hold

__all__ = [
    "EMPTY_HANDED_UNTIL",
    "SEARCH_UNTIL",
    "Guess",
    "Search",
    "Undecided",
    "give_way",
    "is_here",
    "keep",
    "load_here",
]

SEARCH_UNTIL = 0.6
"""Share of the budget by which the search ends; the rest is for the proof."""
EMPTY_HANDED_UNTIL = 0.7
"""The same while nothing was kept: there is nothing to prove yet, and two launches more can still be proof enough."""


@dataclass(frozen=True)
class Guess:
    """An undecided trial: the moves that it was about, what it saw, and what the report would say of them."""

    moves: list[Move]
    interval: Interval
    results: list[LeverResult]
    replayed: bool


@dataclass(frozen=True)
class Undecided:
    """What the first trial of a lever said that could not tell, and in which of its ways (lap/caches.ways)."""

    result: LeverResult
    way: int = 0


@dataclass
class Search:
    """Where the search stands: the plan so far, its arm, and what was tried."""

    incumbent: Arm
    findings: Findings
    moves: list[Move] = field(default_factory=list)
    results: list[LeverResult] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    cumulative: float = 1.0
    tried: set[tuple[str, str]] = field(default_factory=set)
    undecided: dict[tuple[str, str], Undecided] = field(default_factory=dict)
    """Where the first trial could not tell: such a lever is tried a second time, if there is time."""
    looked_again: bool = False
    """Whether those were tried together (lap/left_open)."""
    notes: list[str] = field(default_factory=list)
    replayed: bool = False
    """Whether the incumbent trains on the replayed first batches of its epoch."""

    guesses: list[Guess] = field(default_factory=list)
    """Undecided trials of the unmodified script: the proof may decide on one of them, if nothing is kept."""
    guessed: bool = False
    """Whether the moves are a guess, which the proof is to decide on (lap/best_guess)."""
    lot: list[Candidate] = field(default_factory=list)
    """What was tried in one trial (lap/together)."""
    doubted: set[str] = field(default_factory=set)
    """Levers of the lot that were taken away on trial."""
    too_slow: bool = False
    """Whether nothing was tried since no trial could count enough of the script's steps (lap/slow_steps)."""

    @property
    def until(self) -> float:
        """Share of the budget by which the search ends."""
        return SEARCH_UNTIL if self.moves else EMPTY_HANDED_UNTIL


def give_way(state: Search, move: Move, why: str) -> None:
    """A move that was kept leaves the plan; its result says why."""
    state.moves = [m for m in state.moves if m is not move]
    for number, result in enumerate(state.results):
        if result.kept and result.id == move.lever:
            state.results[number] = replace(result, kept=False, reason=f"{result.reason}: {why}", cumulative=None)


def is_here(state: Search, moves: Sequence[Move], arm: Arm) -> bool:
    """Whether the workers that ``moves`` take away went: a loader that prepares its own keeps them."""
    return HERE not in moves or HERE in state.moves or HERE.lever in took_hold(arm)


def load_here(state: Search, moves: Sequence[Move], why: str) -> None:
    """Samples are no longer loaded beside the step, if ``moves`` say so: what did that leaves the plan, ``why``; and
    where it was the script's own, its workers are taken away, unless that is what was tried: it has its own result."""
    for move in state.moves:
        if move not in moves and not any(move.lever == m.lever for m in moves if m is not HERE):
            give_way(state, move, why)
    if any(move is HERE for move in moves) and HERE not in state.moves:
        reason = "loaded by the training itself: not measured alone"
        state.results.append(LeverResult(HERE.lever, HERE.setting, HERE.preserves, None, None, True, reason))


def keep(session: Session, baseline: Baseline, state: Search, arm: Arm, moves: list[Move]) -> None:
    """The plan is ``moves`` from now on, and ``arm`` runs it."""
    _keep_why(baseline, state, moves)
    old, state.incumbent, state.moves = state.incumbent, arm, moves
    now, roof = rediagnose(session, arm), baseline.findings.roof
    if now is not None and roof is not None:
        now = replace(now, roof=replace(roof, share=roof.step_s / now.throughput.step_s))
    state.findings = now or state.findings
    if old is not baseline.arm:
        session.discard(old)
    elif no_room_beside(session, old, arm):
        old.stop()  # it starts again for the proof


def _keep_why(baseline: Baseline, state: Search, moves: list[Move]) -> None:
    """Findings of moves that come in, where the unmodified script had none: `hotlap patch` needs their lines."""
    known = levers()
    for move in moves:
        lever = known.get(move.lever)
        if lever is None or move in state.moves or lever.evidence(baseline.findings) is not None:
            continue
        finding = lever.evidence(state.findings)
        if finding is not None:
            laid_bare = [*baseline.findings.laid_bare, finding]
            baseline.findings = replace(baseline.findings, laid_bare=laid_bare)
