"""What budget a lap needs where steps are slow: each comparison is of so many of them, however long they take."""

from __future__ import annotations

import math

from hotlap.lap.baseline import Baseline
from hotlap.lap.incumbent import EMPTY_HANDED_UNTIL, SEARCH_UNTIL, Search
from hotlap.lap.launches import START_S, WARM_UP_S
from hotlap.lap.measure import LONG_SHARE, WINDOWS, windows_of
from hotlap.lap.one_at_a_time import launches_per_trial
from hotlap.lap.prove import LAUNCHES_UNTIL
from hotlap.lap.roof import MEASURE_S
from hotlap.lap.session import Session
from hotlap.proof.speedup import MIN_LAUNCHES
from hotlap.records.trials import TOO_FEW
from hotlap.report import units
from hotlap.trial.design import mean_turn_s

__all__ = [
    "enough_budget_s",
    "grown",
    "holds_a_proof",
    "holds_a_trial",
    "least_trial_s",
    "make_room_for_roof",
    "proof_budget_s",
    "too_slow",
]


def too_slow(session: Session, baseline: Baseline, state: Search, before_s: float) -> str | None:
    """What the user is told of a search that found nothing since its trials held too few of the script's steps, or
    would have held too few."""
    seen = any(TOO_FEW in trial.reason for trial in state.trials)
    if state.moves or not (seen or state.too_slow):
        return None
    needed_s = enough_budget_s(session, baseline, before_s)
    if needed_s <= session.budget_s:  # neighbours spoiled the windows
        return None
    return (
        f"Steps of {units.seconds(baseline.findings.throughput.step_s)} are too slow for this budget: trying a lever "
        f"on them, and proving it, takes about --budget {math.ceil(needed_s / 60)}m."
    )


def enough_budget_s(session: Session, baseline: Baseline, before_s: float) -> float:
    """Seconds of budget that hold one trial of the search and as many launches as a claim needs.

    ``before_s``: what was spent before the search began.
    """
    search_s = (before_s + least_trial_s(session, baseline)) / SEARCH_UNTIL
    windows_s = before_s + _least_windows_s(session, baseline) / LONG_SHARE
    return max(search_s, windows_s, _least_proof_s(session, baseline) / (LAUNCHES_UNTIL - SEARCH_UNTIL))


def grown(session: Session, baseline: Baseline, before_s: float) -> bool:
    """Whether a budget of our own was made large enough for a trial and a proof of slow steps; says so at once."""
    step_s = baseline.findings.throughput.step_s
    enough_s = 60.0 * math.ceil(enough_budget_s(session, baseline, before_s) / 60)
    if not session.grow(enough_s):
        return False
    session.listener.line(
        f"  Steps of {units.seconds(step_s)} are slow: trying levers on them and proving takes about "
        f"{enough_s / 60:.0f} minutes. (--budget TIME ends it earlier.)"
    )
    return True


def make_room_for_roof(session: Session, baseline: Baseline) -> str | None:
    """Make a budget of our own large enough for the roof of slow steps, and say so at once: it is measured before the
    search, whose trials may make it larger still.

    Returns why it cannot be measured, where not even the windows that an interval needs would fit.
    """
    step = units.seconds(baseline.findings.throughput.step_s)
    least_s = _least_windows_s(session, baseline)
    if least_s <= LONG_SHARE * session.left_s():
        return None
    enough_s = session.elapsed_s - session.extra_s + _ready_s(session, baseline) + least_s / LONG_SHARE
    if session.grow(enough_s):
        session.listener.line(
            f"  Steps of {step} are slow: measuring their roof takes about {units.seconds(least_s)}. "
            "(--budget TIME ends it earlier.)"
        )
        return None
    # what `measure` gives the windows of slow steps, and how long it goes on for those that are lacking
    most_s = max(MEASURE_S, LONG_SHARE * session.left_s()) * (1 + WINDOWS.patience)
    if _least_windows_s(session, baseline, whole=True) > most_s:
        return f"steps of {step} are too slow for it in this budget"
    return None


def holds_a_trial(session: Session, baseline: Baseline, seconds: float) -> bool:
    """Whether a trial for which the search has ``seconds`` can count enough windows (``measure`` gives slow steps
    more, within bounds)."""
    return _least_windows_s(session, baseline) <= max(seconds, LONG_SHARE * session.left_s(1.0))


def holds_a_proof(session: Session, baseline: Baseline) -> bool:
    """Whether what is left holds as many launches as a claim needs, with what may be lent."""
    return _least_proof_s(session, baseline) <= session.left_s(LAUNCHES_UNTIL) + session.lendable_s()


def proof_budget_s(session: Session, baseline: Baseline) -> float:
    """Seconds of budget that would have left time for the proof of a guess: more than there were."""
    proof_s = _least_proof_s(session, baseline)
    spent_s = session.elapsed_s + proof_s
    return max(spent_s / LAUNCHES_UNTIL, proof_s / (LAUNCHES_UNTIL - EMPTY_HANDED_UNTIL))


def least_trial_s(session: Session, baseline: Baseline) -> float:
    """What a trial of the search takes at least: the candidate's launch, its warm-up, the fewest windows that count."""
    launches = 2 * launches_per_trial(session) - 1
    return launches * _ready_s(session, baseline) + _least_windows_s(session, baseline)


def _least_proof_s(session: Session, baseline: Baseline) -> float:
    starts = 2 * launches_per_trial(session)
    launch_s = starts * _ready_s(session, baseline) + _least_windows_s(session, baseline, whole=True)
    return MIN_LAUNCHES * launch_s


def _ready_s(session: Session, baseline: Baseline) -> float:
    """Launch and warm-up of one arm."""
    warm_s = windows_of(session, whole=False).warmup_steps * baseline.findings.throughput.step_s
    return max(START_S, baseline.start_s) + max(WARM_UP_S, warm_s)


def _least_windows_s(session: Session, baseline: Baseline, whole: bool = False) -> float:
    """The fewest pairs of windows that count."""
    windows = windows_of(session, whole=whole)
    return 2 * windows.min_pairs * mean_turn_s(baseline.findings.throughput.step_s, windows)
