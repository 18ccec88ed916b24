"""What the search does with a lever that a noisy machine could not judge."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lap_support import Session

from hotlap.lap import incumbent, try_lever, without
from hotlap.lap import search as module
from hotlap.lap.caches import HERE, loaded_here, relieved, ways
from hotlap.lap.incumbent import EMPTY_HANDED_UNTIL, SEARCH_UNTIL, Search, load_here
from hotlap.lap.search import search
from hotlap.lever.contract import Gain
from hotlap.plan.match import Candidate
from hotlap.records.findings import Findings, Roof
from hotlap.records.plan import Move
from hotlap.records.trials import Interval, Trial
from hotlap.testing.lever_kit import findings_of

UNCERTAIN, CERTAIN, NONE = Interval(1.5, 0.7, 3.4), Interval(1.5, 1.3, 1.8), Interval(0.9, 0.8, 0.99)
FOUR = ("allocator", "autocast", "channels-last", "cache-teacher")


CUT = Interval(0.0, 0.0, 0.0)
"""The answer of a trial that is cut off, and the search with it."""


class Cut(Exception):
    """What a trial that is cut off raises."""


def with_workers(count: int, device: str = "cpu") -> Findings:
    found = findings_of("decode")
    assert found.script.loader is not None
    loader = replace(found.script.loader, num_workers=count)
    return replace(found, script=replace(found.script, loader=loader, device=device))


def searched(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, list[Interval]],
    levers: list[str] | None = None,
    baseline_arm: Any = "baseline",
    step_s: float = 0.05,
    to_search_s: float = 0.0,
    to_proof_s: float = 200.0,
    asked: bool = True,
    roof: Roof | None = None,
    data_wait: float | None = 0.2,
    own_workers: int = 0,
    device: str = "cpu",
    held: frozenset[str] = frozenset({"loader-workers"}),
    skip: tuple[str, ...] = (),
) -> tuple[Search, Session]:
    """A search among ``levers`` (all of ``answers``): what the trials of each say, one after the other."""
    session, findings = Session(), with_workers(own_workers, device)
    session.may_lend = {"search": to_search_s, "proof": to_proof_s}
    session.options.budget_asked = asked
    session.options.allow, session.options.skip = ("bits", "maths", "distribution"), skip
    findings = replace(findings, throughput=replace(findings.throughput, step_s=step_s))
    findings = replace(findings, phases={**findings.phases, "data_wait": data_wait})

    def promising(_: Any, state: Search, __: Any) -> list[Candidate]:
        left = [name for name in levers or answers if (name, "{}") not in state.tried]
        late = {lever for lever, _ in state.undecided}
        made = [Candidate(name, {}, "bits", "decode", 1.5, Gain(0.1, 0.2, "prior")) for name in left]
        return sorted(made, key=lambda c: c.lever in late)

    def measure(session: Session, _: Any, arm: str, __: Any) -> Trial:
        session.spent_s += 20.0
        answer = answers[arm].pop(0)
        if answer is CUT:
            raise Cut
        return Trial(arm, {}, "measured", interval=answer, changes=1)

    monkeypatch.setattr(module, "_promising", promising)
    monkeypatch.setattr(incumbent, "took_hold", lambda _: held)
    for where in (try_lever, without):
        monkeypatch.setattr(where, "measure", measure)
    monkeypatch.setattr(module, "lot", lambda _: [])
    monkeypatch.setattr(module, "refusals", lambda *_: [])
    monkeypatch.setattr(module, "usable", lambda *_: ([], []))
    monkeypatch.setattr(try_lever, "check_baseline", lambda _: None)
    monkeypatch.setattr(incumbent, "rediagnose", lambda *_: None)
    baseline = SimpleNamespace(arm=baseline_arm, findings=findings, start_s=0.0)
    state = Search(cast(Any, baseline_arm), findings)
    with suppress(Cut):
        search(cast(Any, session), cast(Any, baseline), state, roof)
    return state, session


@pytest.mark.parametrize(
    ("share", "data_wait", "tried"),
    [(0.9, 0.01, True), (0.98, 0.01, False), (0.98, 0.14, True), (0.98, None, False)],
)
def test_at_the_roof_only_what_raises_it_is_tried(
    monkeypatch: pytest.MonkeyPatch, share: float, data_wait: float | None, tried: bool
) -> None:
    roof = Roof(100.0, 0.05, share, "measured")
    state, _ = searched(monkeypatch, {"cache-decode": [CERTAIN]}, roof=roof, data_wait=data_wait)
    assert [m.lever for m in state.moves] == (["cache-decode"] if tried else [])
    state, _ = searched(monkeypatch, {"autocast": [CERTAIN]}, roof=roof, data_wait=data_wait)
    assert [m.lever for m in state.moves] == ["autocast"]


def test_what_was_tried_before_the_search_was_cut_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"allocator": [NONE], "autocast": [CERTAIN], "cache-decode": [UNCERTAIN], "channels-last": [CUT]}
    state, _ = searched(monkeypatch, answers)
    assert [(r.id, r.kept) for r in state.results] == [
        ("allocator", False),
        ("autocast", True),
        ("cache-decode", False),
    ]


def test_a_lever_in_doubt_is_tried_once_more_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    state, session = searched(monkeypatch, {"cache-decode": [UNCERTAIN, CERTAIN], "autocast": [NONE]})
    assert [(r.id, r.kept) for r in state.results] == [("autocast", False), ("cache-decode", True)]
    assert [m.lever for m in state.moves] == ["cache-decode"] and state.notes == []
    assert "undecided for now" in session.lines[0]


@pytest.mark.parametrize(
    ("found", "again"),
    [(Interval(1.02, 0.68, 1.56), True), (Interval(1.02, 0.8, 1.4), False), (Interval(0.98, 0.68, 1.56), False),
     (Interval(1.02, 0.98, 1.06), False)],
    ids=["holds what was promised", "does not", "likelier slower", "is certain enough"],
)  # fmt: skip
def test_a_trial_that_cannot_tell_what_was_promised_from_nothing_is_made_again(
    found: Interval, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, session = searched(monkeypatch, {"cache-decode": [found, CERTAIN], "autocast": [NONE]})
    assert [m.lever for m in state.moves] == ["cache-decode"] * again  # 1.5x was promised
    assert ("undecided for now" in session.lines[0]) == again


def test_a_lever_left_in_doubt_is_told_with_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    state, _ = searched(monkeypatch, {name: [UNCERTAIN, UNCERTAIN] for name in FOUR})
    assert {r.id for r in state.results} == set(FOUR)
    assert [m.lever for m in state.moves] == ["allocator"] and state.guessed, "the proof's many launches may tell"
    assert [r.id for r in state.results if r.kept] == ["allocator"] and "put to the proof" in state.results[-1].reason
    assert len(state.results) == 4, "each is told once"
    assert "too noisy to judge" in state.notes[0] and "larger --budget" in state.notes[0]


def test_a_guess_without_time_for_its_proof_is_told_with_the_budget_that_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = {name: [UNCERTAIN, UNCERTAIN] for name in FOUR}
    state, _ = searched(monkeypatch, answers, to_proof_s=0.0)
    assert not state.moves and not state.guessed
    assert "no time was left for a proof of what promised most, allocator at 1.5x [0.7, 3.4]" in state.notes[-1]
    assert "--budget 3m" in state.notes[-1], "three pairs of launches take 43 s, which is 29 % of it"


def test_steps_of_which_no_trial_holds_enough_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Candidate("a", {}, "bits", "decode", 1.2, Gain(0.1, 0.2, "prior"))
    monkeypatch.setattr(module, "candidates", lambda *_: [small])
    state, session = searched(monkeypatch, {"a": [CERTAIN]}, step_s=1.0)
    assert state.trials == [] and session.spent_s == 0.0 and state.too_slow
    assert state.notes[0].startswith("Steps of 1.00 s are too slow for this budget")
    assert state.refused == [
        ("a", "No time was left for it: so few of the script's steps fit the budget. A larger --budget tries it.")
    ]
    state, _ = searched(monkeypatch, {"a": [CERTAIN]}, step_s=0.8)
    assert [m.lever for m in state.moves] == ["a"], "40 % of what is left holds four pairs of windows"


def test_a_budget_of_our_own_grows_where_steps_are_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    state, session = searched(monkeypatch, {"a": [CERTAIN]}, step_s=1.0, asked=False)
    assert [m.lever for m in state.moves] == ["a"] and state.notes == [] and not state.too_slow
    assert session.budget_s == 480.0 and "takes about 8 minutes" in session.lines[0]
    state, session = searched(monkeypatch, {"a": [CERTAIN]}, step_s=3.0, asked=False)
    assert state.too_slow and session.budget_s == 100.0, "more than a quarter of an hour is told, not taken"


def test_what_promises_much_is_lent_the_time_of_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {name: [CERTAIN] for name in ("a", "b", "c", "d", "e")}
    state, _ = searched(monkeypatch, answers)
    assert len(state.results) == 3, "until 60 s"
    answers = {name: [CERTAIN] for name in ("a", "b", "c", "d", "e", "f", "g")}
    state, session = searched(monkeypatch, answers, to_search_s=40.0)
    assert len(state.results) == 5, "two trials more, and the third would exceed what may be lent"
    assert session.extra_s == pytest.approx(2 * 17.0) and session.left_s() == pytest.approx(34.0), "the proof keeps its"


def test_what_starts_slowly_is_lent_its_start_too_or_left_for_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Candidate("slow", {}, "maths", "unfused", 1.2, Gain(0.1, 0.2, "prior", startup_s=34.0))
    quick = Candidate("quick", {}, "bits", "decode", 1.1, Gain(0.1, 0.2, "prior"))
    tried: list[str] = []

    def run(lent_s: float) -> list[str]:
        tried.clear()
        session, state = Session(), Search(cast(Any, "baseline"), findings_of("decode"))
        session.spent_s, session.may_lend = 40.0, {"search": 0.0, "start": lent_s, "proof": 0.0}
        monkeypatch.setattr(module, "_promising", lambda *_: [c for c in (slow, quick) if c.lever not in tried])
        monkeypatch.setattr(module, "try_lever", lambda _, __, ___, c, ____: tried.append(c.lever))
        while module._step(session, cast(Any, SimpleNamespace(start_s=4.0, findings=state.findings)), state, None, []):
            session.spent_s += 5.0
        return tried

    assert run(0.0) == ["quick"] and run(80.0) == ["slow", "quick"]


def test_while_nothing_is_kept_the_search_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert EMPTY_HANDED_UNTIL > SEARCH_UNTIL
    empty, session = searched(monkeypatch, {name: [NONE] for name in ("a", "b", "c", "d", "e")})
    assert len(empty.results) == 4 and session.spent_s == 80.0, "three trials end at 60 s: there is time for one more"
    full, session = searched(monkeypatch, {"a": [CERTAIN], **{name: [NONE] for name in ("b", "c", "d", "e")}})
    assert len(full.results) == 3 and session.spent_s == 60.0, "from 60 s on the time is for the proof"


@pytest.mark.parametrize("with_knob", [False, True])
def test_what_starts_slowly_stays_behind_cheap_levers_that_promise_less(
    monkeypatch: pytest.MonkeyPatch, with_knob: bool
) -> None:
    promise = {"compile-model": (1.12, 34.0), "optimizer-fused": (1.03, 0.0), "autocast": (1.3, 0.0)}
    found = [Candidate(name, {}, "maths", "x", ratio, Gain(0.1, 0.2, "prior", start_s))
             for name, (ratio, start_s) in promise.items()]  # fmt: skip
    knob = Candidate("knob:x", 1, "goal", "x", 1.0, Gain(0.0, 0.0, "prior"))
    monkeypatch.setattr(module, "candidates", lambda *_: found)
    monkeypatch.setattr(module, "knob_candidates", lambda *_: [knob] if with_knob else [])
    state = Search(cast(Any, "baseline"), findings_of("precision"))
    order = [c.lever for c in module._promising(cast(Any, Session()), state, [])]
    expected = ["autocast", "knob:x", "optimizer-fused", "compile-model"]
    assert order == [name for name in expected if with_knob or name != "knob:x"]


def test_what_there_was_no_time_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Candidate("compile-model", {}, "maths", "python-loop", 1.4, Gain(0.1, 0.2, "prior", 34.0))
    small = [Candidate(name, {}, "bits", "decode", ratio, Gain(0.1, 0.2, "prior")) for name, ratio in
             (("a", 1.2), ("e", 1.2), ("f", 1.01))]  # fmt: skip
    monkeypatch.setattr(module, "candidates", lambda *_: [slow, *small])
    state, _ = searched(monkeypatch, {name: [NONE] for name in ("a", "b", "c", "d", "e")})
    told = dict(state.refused)
    assert set(told) == {"compile-model", "e"}, "not what was tried, nor what promises next to nothing"
    assert "its start alone takes 34" in told["compile-model"] and "others came first" in told["e"]
    assert "larger --budget" in told["e"]


def test_where_the_causes_took_the_whole_budget_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    only = Candidate("a", {}, "bits", "decode", 1.2, Gain(0.1, 0.2, "prior"))
    monkeypatch.setattr(module, "candidates", lambda *_: [only])
    for until in ("SEARCH_UNTIL", "EMPTY_HANDED_UNTIL"):
        monkeypatch.setattr(incumbent, until, 0.0)
    state, _ = searched(monkeypatch, {"a": [CERTAIN]})
    assert not state.results and "the causes and the roof took the first " in dict(state.refused)["a"]


def test_workers_go_when_a_cache_has_taken_their_work(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"loader-workers": [CERTAIN], "cache-decode": [CERTAIN], "without-loader-workers": [CERTAIN]}
    monkeypatch.setattr(incumbent, "SEARCH_UNTIL", 1.0)
    state, session = searched(monkeypatch, answers, ["loader-workers", "cache-decode"])
    assert [m.lever for m in state.moves] == ["cache-decode"] and state.cumulative == pytest.approx(1.5**3)
    workers, cache = state.results
    assert not workers.kept and workers.cumulative is None and cache.kept
    assert workers.reason.endswith("it paid, and with cache-decode the step is 1.50x as fast without it")
    assert session.lines[-1] == "  loader-workers  1.50x without it: put back"
    assert cache.cumulative == pytest.approx(1.5**3), "the total stands at the last that is kept"


def test_workers_stay_where_going_without_is_not_certain_to_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"loader-workers": [CERTAIN], "cache-decode": [CERTAIN], "without-loader-workers": [UNCERTAIN]}
    monkeypatch.setattr(incumbent, "SEARCH_UNTIL", 1.0)
    state, _ = searched(monkeypatch, answers, ["loader-workers", "cache-decode"])
    assert [m.lever for m in state.moves] == ["loader-workers", "cache-decode"] and len(state.trials) == 3
    assert all(result.kept for result in state.results)
    other, _ = searched(monkeypatch, {"loader-workers": [CERTAIN], "autocast": [CERTAIN]})
    assert len(other.trials) == 2, "a lever that is no cache takes no work from the workers"


def test_whole_samples_from_memory_are_tried_in_the_place_of_workers_first(monkeypatch: pytest.MonkeyPatch) -> None:
    levers = ["loader-workers", "cache-sample"]
    state, _ = searched(monkeypatch, {"loader-workers": [CERTAIN], "cache-sample": [CERTAIN]}, levers)
    assert [m.lever for m in state.moves] == ["cache-sample"] and len(state.trials) == 2
    workers, cache = state.results
    assert workers.reason.endswith("it paid, and cache-sample in its place is 1.50x as fast") and not workers.kept
    assert cache.kept and cache.cumulative == pytest.approx(1.5**2)
    monkeypatch.setattr(incumbent, "SEARCH_UNTIL", 1.0)
    answers = {"loader-workers": [CERTAIN], "cache-sample": [NONE, CERTAIN]}
    state, session = searched(monkeypatch, answers, levers)
    assert [m.lever for m in state.moves] == levers and all(result.kept for result in state.results)
    assert len(state.results) == 2 and len(state.trials) == 3, "no third look without workers, which lost"
    assert session.lines[-2].startswith("  cache-sample, loaded by the training itself  0.90x")
    state, _ = searched(monkeypatch, {"loader-workers": [CERTAIN], "cache-sample": [NONE, NONE]}, levers)
    assert [m.lever for m in state.moves] == ["loader-workers"] and [r.kept for r in state.results] == [True, False]


@pytest.mark.parametrize("lever", ["cache-sample", "cache-decode"])
def test_on_a_cpu_the_scripts_own_workers_are_taken_away_where_a_cache_makes_them_needless(
    monkeypatch: pytest.MonkeyPatch, lever: str
) -> None:
    monkeypatch.setattr(incumbent, "SEARCH_UNTIL", 1.0)
    late = lever == "cache-decode"  # beside the workers first
    answers = {lever: [CERTAIN], "without-loader-workers": [CERTAIN]}
    state, session = searched(monkeypatch, answers, [lever], own_workers=16)
    assert HERE in state.moves and {m.lever for m in state.moves} == {"loader-workers", lever}
    assert {r.id for r in state.results if r.kept} == {"loader-workers", lever}
    assert state.results[-1].cumulative == pytest.approx(1.5**2 if late else 1.5)
    assert session.lines[-1].startswith("+ loader-workers  1.50x: samples" if late else "+ cache-sample  1.50x")


def test_a_cache_that_does_not_pay_beside_workers_may_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incumbent, "SEARCH_UNTIL", 1.0)
    answers = {"loader-workers": [CERTAIN], "cache-decode": [NONE, CERTAIN]}
    state, _ = searched(monkeypatch, answers, ["loader-workers", "cache-decode"], own_workers=16)
    assert [(m.lever, m.setting) for m in state.moves] == [("loader-workers", HERE.setting), ("cache-decode", {})]
    given_way, here, cache = state.results
    assert not given_way.kept and "cache-decode in its place is 1.50x as fast" in given_way.reason
    assert here.kept and here.measured is None and cache.kept and cache.cumulative == pytest.approx(1.5**2)


def test_workers_that_are_taken_away_have_one_result() -> None:
    tried = replace(HERE)
    assert tried == HERE
    state = Search(cast(Any, "baseline"), findings_of("augment"))
    load_here(state, [tried], "it paid")
    assert not state.results, "the trial's own result tells it"
    load_here(state, [HERE, Move("cache-sample", {}, "bits")], "it paid")
    assert [(result.id, result.measured) for result in state.results] == [("loader-workers", None)]


@pytest.mark.parametrize("said", [{"skip": ("loader-workers",)}, {"held": frozenset({"cache-decode"})}], ids=str)
def test_workers_that_the_user_or_their_loader_keeps_stay(monkeypatch: pytest.MonkeyPatch, said: Any) -> None:
    monkeypatch.setattr(incumbent, "SEARCH_UNTIL", 1.0)
    answers = {"cache-decode": [CERTAIN], "without-loader-workers": [CERTAIN]}
    state, _ = searched(monkeypatch, answers, ["cache-decode"], own_workers=16, **said)
    assert [m.lever for m in state.moves] == ["cache-decode"] and len(state.results) == 1
    assert len(state.trials) == (1 if "skip" in said else 2)


def test_why_a_plan_that_paid_is_not_kept_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incumbent, "SEARCH_UNTIL", 1.0)
    nobody: frozenset[str] = frozenset()
    state, _ = searched(monkeypatch, {"cache-sample": [CERTAIN, NONE]}, own_workers=16, held=nobody)
    assert not state.moves and state.results[0].reason.endswith(", but the script's loader keeps its workers")


def test_the_better_of_two_ways_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incumbent, "SEARCH_UNTIL", 1.0)
    found = {"cache-decode": [UNCERTAIN, NONE, CERTAIN], "without-loader-workers": [NONE]}
    state, session = searched(monkeypatch, found, ["cache-decode"], own_workers=16)
    assert "undecided for now: 1.50x" in session.lines[1] and session.lines[0].startswith("  cache-decode, beside")
    assert [m.lever for m in state.moves] == ["cache-decode"], "tried once more"


def test_own_workers_stay_where_they_pay_and_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"cache-decode": [CERTAIN], "without-loader-workers": [NONE]}
    state, _ = searched(monkeypatch, answers, ["cache-decode"], own_workers=16)
    assert [m.lever for m in state.moves] == ["cache-decode"] and len(state.trials) == 2 and len(state.results) == 1
    state, _ = searched(monkeypatch, {"cache-decode": [CERTAIN]}, own_workers=16, device="cuda:0")
    assert [m.lever for m in state.moves] == ["cache-decode"] and len(state.trials) == 1


def test_what_fills_the_card_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(try_lever, "too_full", lambda *_: "it holds 97 % of the A100's memory")
    state, _ = searched(monkeypatch, {"autocast": [CERTAIN]})
    (result,) = state.results
    assert not state.moves and not result.kept
    assert result.reason == "1.50x [1.30, 1.80], but it holds 97 % of the A100's memory"


def test_the_ways_of_a_cache() -> None:
    none, own = with_workers(0), with_workers(4)
    cache, whole, other = (Move(name, {}, "bits") for name in ("cache-decode", "cache-sample", "autocast"))
    two = Move("loader-workers", {**HERE.setting, "workers": 2}, "distribution")
    assert relieved([HERE], "cache-decode") is None and loaded_here([HERE, other], own, True) is None
    assert relieved([two], "cache-decode") is two and loaded_here([two, other], none, False) == [other]
    assert loaded_here([two], own, False) is None and ways([two], whole, own, False) == [[two, whole]]
    assert own.script.loader is not None
    stream = replace(own, script=replace(own.script, loader=replace(own.script.loader, iterable=True)))
    assert loaded_here([], stream, True) is None
    assert ways([HERE], cache, own, True) == [[HERE, cache]] and ways([other], cache, none, True) == [[other, cache]]
    assert ways([two, other], cache, none, True) == [[two, other, cache], [other, cache]]
    assert ways([two, other], whole, none, True) == [[other, whole], [two, other, whole]]
    assert ways([two, other], whole, own, True) == [[other, HERE, whole], [two, other, whole]]
    assert ways([], whole, own, True) == [[HERE, whole], [whole]]
    assert ways([two], other, own, True) == ways([two, other], other, own, True) == [[two, other]]
    assert ways([two], Move("cache-teacher", {}, "maths"), own, True) == [[two, Move("cache-teacher", {}, "maths")]]


@pytest.mark.parametrize("no_room", [False, True])
def test_the_script_itself_gives_way_where_a_third_arm_has_no_room(
    monkeypatch: pytest.MonkeyPatch, no_room: bool
) -> None:
    stopped: list[str] = []
    monkeypatch.setattr(incumbent, "no_room_beside", lambda *_: no_room)
    script = SimpleNamespace(stop=lambda: stopped.append("baseline"))
    searched(monkeypatch, {"autocast": [CERTAIN], "channels-last": [CERTAIN]}, baseline_arm=script)
    assert stopped == ["baseline"] * no_room


def test_why_a_lever_came_in_is_kept_for_its_patch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incumbent, "rediagnose", lambda *_: findings_of("optimizer-loop", "precision"))
    monkeypatch.setattr(incumbent, "no_room_beside", lambda *_: False)
    baseline = SimpleNamespace(arm="baseline", findings=findings_of("padding", "precision"))
    state = Search(cast(Any, "baseline"), baseline.findings)
    moves = [Move(name, {}, "maths") for name in ("trim-padding", "optimizer-fused", "autocast")]
    for count in (1, 2, 3):
        incumbent.keep(cast(Any, Session()), cast(Any, baseline), state, cast(Any, "arm"), moves[:count])
    assert [f.cause for f in baseline.findings.laid_bare] == ["optimizer-loop"]
