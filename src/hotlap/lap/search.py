"""The search: pull the lever that promises most, measure, keep it or put it back, look again."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.lap.baseline import Baseline
from hotlap.lap.best_guess import prove_best
from hotlap.lap.incumbent import Search
from hotlap.lap.knobs import usable
from hotlap.lap.left_open import left_open, plan_with
from hotlap.lap.session import Session
from hotlap.lap.slow_steps import grown, holds_a_trial, too_slow
from hotlap.lap.together import expected_trial_s, few_trials, is_doubtful, least_of_lot, lot, try_together
from hotlap.lap.try_lever import try_lever
from hotlap.lap.without import try_without
from hotlap.lever.registry import levers
from hotlap.plan.knob_walk import knob_candidates, left_out
from hotlap.plan.match import Candidate, candidates, refusals
from hotlap.plan.order import SLOW_START_S, order
from hotlap.records.findings import Roof
from hotlap.records.knob import Knob
from hotlap.records.trials import NO_TIME
from hotlap.report import units

__all__ = ["search"]

MEASURE_S = 14.0
"""At most; most comparisons are settled long before."""
LOT_S = 2 * MEASURE_S
"""The same where the trial is of all levers at once, and there are few others."""
CLOSE_TO_ROOF = 0.97
"""At this share of the roof only numeric levers go on: the rest is smaller than what a trial can see."""
MIN_PREDICTED = 1.02
"""A lever that promises less than this is not worth the time of a trial."""
BEFORE_KNOBS = 1.1
"""A lever that promises more than this goes before the user's knobs: it changes less."""

WORTH_LENDING = 1.04
"""A lever that promises as much is tried after the search's share of a budget that is ours, too. Of those that
gain 3 %, 1 to 14 in a hundred are kept where launches are alike (bench/power.py)."""


def search(session: Session, baseline: Baseline, state: Search, roof: Roof | None) -> None:
    """Try levers one by one until none pays, the roof is reached or the budget's share is spent.

    ``state`` is filled as it goes: whatever ends it, what was tried is told.
    """
    session.stage = "levers"
    options, before_s = session.options, session.elapsed_s
    state.refused = refusals(state.findings, session.machine, options.allow, options.only, options.skip)
    knobs, refused = usable(session, state.findings)
    state.refused += refused
    if _still_worth(state, roof, _promising(session, state, knobs)):
        state.too_slow = not (holds_a_trial(session, baseline, MEASURE_S) or grown(session, baseline, before_s))
    try:
        if not state.too_slow:
            _together(session, baseline, state, roof, knobs)
        while not state.too_slow and _step(session, baseline, state, roof, knobs):
            pass
    finally:
        unsettled = [first.result for key, first in state.undecided.items() if key not in state.tried]
        state.results += unsettled
    if (slow := too_slow(session, baseline, state, before_s)) is not None:
        state.notes.append(slow)
    elif unsettled:
        names = ", ".join(first.id for first in unsettled)
        state.notes.append(
            f"This machine was too noisy to judge {names} in the time there was: a larger --budget gives longer "
            "trials, and a second look."
        )
    state.notes += left_out(knobs, state.results, state.tried)
    prove_best(session, baseline, state)
    state.refused += _no_time_for(session, state, roof, before_s)


def _step(session: Session, baseline: Baseline, state: Search, roof: Roof | None, knobs: Sequence[Knob]) -> bool:
    """One trial more: of what promises most; of a member of the lot, where it is to be doubted first. False at the end.

    First members that are doubtful by their kind; then levers that promise something beside the lot; then its others.
    What noise left open comes last: together first, then one by one.
    """
    found = _still_worth(state, roof, _promising(session, state, knobs))
    member = least_of_lot(state)
    doubtful = member is not None and is_doubtful(state, member)
    promising = any(c.predicted >= WORTH_LENDING for c in found)
    if member is not None and (doubtful or not promising) and _has_time(session, baseline, state, doubtful):
        state.doubted.add(member.lever)
        seconds = min(MEASURE_S, session.left_s(state.until))
        try_without(session, baseline, state, member, seconds, "it came in with others, and")
        return True
    still_open = left_open(state, found)
    for candidate in [c for c in found if c not in still_open]:
        if _has_time(session, baseline, state, candidate.predicted >= WORTH_LENDING, [candidate]):
            try_lever(session, baseline, state, candidate, MEASURE_S)
            return True
    return bool(still_open) and _look_again(session, baseline, state, still_open)


def _look_again(session: Session, baseline: Baseline, state: Search, found: Sequence[Candidate]) -> bool:
    """What noise left open, all of it in one trial. Each has shown a gain by itself: none is doubted after it."""
    state.looked_again = True
    if _has_time(session, baseline, state, True, found):
        plan = plan_with(session, baseline, state, found)
        try_together(session, baseline, state, found, min(LOT_S, session.left_s(state.until)), plan)
    return True


def _has_time(
    session: Session, baseline: Baseline, state: Search, worth_lending: bool, wanted: Sequence[Candidate] = ()
) -> bool:
    """Whether the search has time for one trial more, its start included; lent, where it is worth that."""
    start_s = sum(c.gain.startup_s for c in wanted)
    account = "start" if start_s > SLOW_START_S else "search"
    if worth_lending and session.left_s(state.until) <= start_s + MEASURE_S / 3:
        trial_s = start_s + expected_trial_s(session, baseline, state, wanted, MEASURE_S)
        session.lend(trial_s, state.until, account)
    return session.left_s(state.until) > start_s + MEASURE_S / 3


def _together(session: Session, baseline: Baseline, state: Search, roof: Roof | None, knobs: Sequence[Knob]) -> None:
    """All at once, where one by one would leave most of them untried."""
    found = lot(_still_worth(state, roof, _promising(session, state, knobs)))
    if len(found) >= 2 and few_trials(session, baseline, state, found, MEASURE_S):
        state.lot = found
        try_together(session, baseline, state, found, min(LOT_S, session.left_s(state.until)))


def _still_worth(state: Search, roof: Roof | None, found: list[Candidate]) -> list[Candidate]:
    """All of them; close to the roof only what would raise the roof itself.

    A plan that spares what the roof's step still did (a teacher's forward) has a higher roof, which is not known: while
    it waits for data, it is not there.
    """
    waits = (state.findings.phases.get("data_wait") or 0.0) > 1 - CLOSE_TO_ROOF
    if roof is None or waits or state.cumulative * roof.share < CLOSE_TO_ROOF:
        return found
    return [c for c in found if c.is_knob or levers()[c.lever].NUMERIC]


def _worth_a_trial(session: Session, state: Search) -> list[Candidate]:
    """What promises enough and was not tried; what the user asked for by name, whatever it promises."""
    options = session.options
    found = candidates(
        state.findings, session.machine, options.allow, options.only, options.skip, state.moves, state.tried
    )
    return [c for c in found if c.predicted >= MIN_PREDICTED or c.lever in options.only]


def _promising(session: Session, state: Search, knobs: Sequence[Knob]) -> list[Candidate]:
    """Candidates worth a trial, best first."""
    again = {lever for lever, _ in {*state.tried, *state.undecided}}
    left_s = session.left_s(state.until) + session.lendable_s("start")
    worth = order(_worth_a_trial(session, state), left_s, again=again)
    place = next((i for i, c in enumerate(worth) if c.predicted <= BEFORE_KNOBS), len(worth))
    return [*worth[:place], *knob_candidates(knobs, state.results, state.tried), *worth[place:]]


def _no_time_for(session: Session, state: Search, roof: Roof | None, before_s: float) -> list[tuple[str, str]]:
    """Levers that promise something and were never tried, and why. ``before_s``: spent before the search began."""
    seen = {result.id for result in state.results}
    first = "others came first" if seen else f"the causes and the roof took the first {units.seconds(before_s)}"
    told = []
    for c in _still_worth(state, roof, order(_worth_a_trial(session, state))):
        if c.lever not in seen:
            start = c.gain.startup_s
            why = f"its start alone takes {units.seconds(start)}" if start else first
            why = "so few of the script's steps fit the budget" if state.too_slow else why
            told.append((c.lever, f"{NO_TIME}: {why}. A larger --budget tries it."))
    return told
