"""What noise left open is looked at once more, all of it in one trial."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lap_support import Session

from hotlap.lap import incumbent, together, try_lever, without
from hotlap.lap import search as module
from hotlap.lap.caches import HERE
from hotlap.lap.incumbent import Search, Undecided
from hotlap.lap.left_open import left_open, plan_with
from hotlap.lap.search import search
from hotlap.lever.contract import Gain
from hotlap.plan.match import Candidate
from hotlap.records.plan import KNOB, Move
from hotlap.records.trials import Interval, LeverResult, Trial
from hotlap.testing.lever_kit import findings_of

OPEN, CERTAIN, NONE = Interval(1.12, 0.95, 1.32), Interval(1.3, 1.1, 1.5), Interval(0.9, 0.8, 0.99)
NAMES = ("cache-teacher", "channels-last", "allocator")


def candidate(name: str, startup_s: float = 0.0) -> Candidate:
    return Candidate(name, {}, "bits", "decode", 1.2, Gain(0.1, 0.2, "prior", startup_s))


def searched(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, list[Interval]],
    names: tuple[str, ...] = NAMES,
    held: tuple[str, ...] = NAMES,
    budget_s: float = 400.0,
) -> tuple[Search, Session, list[str]]:
    """A search among ``names``, whose trials say what ``answers`` holds, one after the other; the trials made."""
    session, findings, made = Session(), findings_of("decode"), list[str]()
    session.budget_s = budget_s

    def measure(session: Session, _: Any, arm: str, __: Any) -> Trial:
        session.spent_s += 20.0
        made.append(arm)
        return Trial(arm, {}, "measured", interval=answers[arm].pop(0), changes=1)

    def promising(_: Any, state: Search, __: Any) -> list[Candidate]:
        late = {lever for lever, _ in state.undecided}
        left = [candidate(name) for name in names if (name, "{}") not in state.tried]
        return sorted(left, key=lambda c: c.lever in late)

    for where in (try_lever, together, without):
        monkeypatch.setattr(where, "measure", measure)
    monkeypatch.setattr(module, "_promising", promising)
    monkeypatch.setattr(module, "lot", lambda _: [])
    monkeypatch.setattr(module, "refusals", lambda *_: [])
    monkeypatch.setattr(module, "usable", lambda *_: ([], []))
    monkeypatch.setattr(module, "candidates", lambda *_: [])
    monkeypatch.setattr(try_lever, "check_baseline", lambda _: None)
    monkeypatch.setattr(incumbent, "rediagnose", lambda *_: None)
    monkeypatch.setattr(together, "took_hold", lambda _: set(held))
    monkeypatch.setattr(together, "last_words", lambda _: {})
    baseline = cast(Any, SimpleNamespace(arm="baseline", findings=findings, start_s=0.0))
    state = Search(baseline.arm, findings)
    search(cast(Any, session), baseline, state, None)
    return state, session, made


def test_what_each_alone_left_open_all_together_may_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {name: [OPEN] for name in NAMES} | {"together": [CERTAIN]}
    state, session, made = searched(monkeypatch, answers)
    assert made == [*NAMES, "together"], "each has shown a gain by itself: none is taken away again"
    assert [m.lever for m in state.moves] == list(NAMES)
    assert state.cumulative == pytest.approx(CERTAIN.ratio), "what was claimed is the gain of all"
    assert [r.cumulative for r in state.results] == [None, None, CERTAIN.ratio]
    assert {r.reason for r in state.results} == {"3 levers together 1.30x [1.10, 1.50]: none was certain by itself"}
    assert state.notes == [], "neither too noisy to judge, nor too slow for trials of their own"
    assert "+ together  1.30x: cache-teacher, channels-last, allocator" in session.lines


def test_beside_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"cache-teacher": [CERTAIN], "channels-last": [OPEN], "allocator": [OPEN], "together": [CERTAIN]}
    state, _, made = searched(monkeypatch, answers)
    assert made == [*NAMES, "together"] and [m.lever for m in state.moves] == list(NAMES)
    assert state.cumulative == pytest.approx(CERTAIN.ratio**2)


def test_where_together_they_are_not_certain_each_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"cache-teacher": [OPEN, NONE], "channels-last": [OPEN, CERTAIN], "allocator": [NONE], "together": [OPEN]}
    state, _, made = searched(monkeypatch, answers)
    assert made == [*NAMES, "together", "cache-teacher", "channels-last"]
    assert [m.lever for m in state.moves] == ["channels-last"]


def test_one_alone_gets_its_second_trial_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"cache-teacher": [OPEN, CERTAIN], "channels-last": [NONE], "allocator": [NONE]}
    state, _, made = searched(monkeypatch, answers)
    assert made == [*NAMES, "cache-teacher"] and [m.lever for m in state.moves] == ["cache-teacher"]


def test_what_did_not_take_hold_beside_the_others_is_no_part_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"cache-teacher": [OPEN], "channels-last": [NONE], "allocator": [OPEN, NONE], "together": [CERTAIN]}
    state, _, _ = searched(monkeypatch, answers, held=("cache-teacher",))
    assert [m.lever for m in state.moves] == ["cache-teacher"] and state.moves[0].gain == CERTAIN.ratio


def test_without_time_for_all_the_time_goes_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, list[Interval]] = {name: [OPEN] for name in NAMES}
    state, _, made = searched(monkeypatch, answers, budget_s=87.0)  # three trials are over at 60 s, of 61 s
    assert made == list(NAMES) and any("too noisy to judge" in note for note in state.notes)


def _state(*open_: tuple[Candidate, Interval | None]) -> Search:
    state = Search(cast(Any, "baseline"), findings_of("decode"))
    for c, found in open_:
        result = LeverResult(c.lever, {}, "bits", 1.2, found, False, "not certain")
        state.undecided[c.lever, "{}"] = Undecided(result)
    return state


def test_what_can_be_looked_at_together() -> None:
    names = ("channels-last", "optimizer-fused", "checkpoint-async", "allocator", f"{KNOB}x", "cache-teacher")
    found = [candidate(name) for name in names]
    ratios = dict.fromkeys(names, OPEN) | {"allocator": CERTAIN, "optimizer-fused": replace(OPEN, ratio=1.05)}
    state = _state(*((c, None if c.lever == "cache-teacher" else ratios[c.lever]) for c in found))
    able = ["allocator", "channels-last"]
    assert [c.lever for c in left_open(state, found)] == able, "the largest gain first, and none beside its rival"
    workers, cache = candidate("loader-workers"), candidate("cache-sample")
    beside = _state(*((c, OPEN) for c in (workers, cache, found[0])))
    assert left_open(beside, [workers, cache, found[0]]) == [cache, found[0]], "it may take the workers' place"
    assert left_open(state, found[:1]) == [], "one alone has its own second trial"
    state.looked_again = True
    assert left_open(state, found) == []


def test_a_cache_of_samples_comes_in_the_way_that_did_best() -> None:
    two = Move("loader-workers", {**HERE.setting, "workers": 2}, "distribution")
    found = [candidate("cache-sample"), candidate("autocast")]
    baseline = cast(Any, SimpleNamespace(findings=findings_of("decode")))
    session = Session()
    session.options.allow = ("bits", "maths", "distribution")
    for way, feeders in ((0, []), (1, ["loader-workers"])):
        state = _state(*((c, OPEN) for c in found))
        state.undecided["cache-sample", "{}"] = replace(state.undecided["cache-sample", "{}"], way=way)
        state.moves = [two]
        plan = plan_with(cast(Any, session), baseline, state, found)
        assert [m.lever for m in plan] == [*feeders, "cache-sample", "autocast"]
