"""Several levers in one trial, where a script starts too slowly for one trial each."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lap_support import Session

from hotlap.lap import incumbent, together, try_lever, without
from hotlap.lap import search as module
from hotlap.lap.best_guess import put_back
from hotlap.lap.caches import HERE, needs_replay, warm_steps
from hotlap.lap.incumbent import Search
from hotlap.lap.search import MEASURE_S, search
from hotlap.lap.together import few_trials, is_doubtful, least_of_lot, lot
from hotlap.lap.without import LIKELY
from hotlap.lever.contract import Gain
from hotlap.plan.match import Candidate, canonical
from hotlap.records.plan import KNOB, Move
from hotlap.records.rows import Mark
from hotlap.records.trials import Interval, Trial
from hotlap.report.terminal import lever_line
from hotlap.testing.lever_kit import findings_of

DOUBT = Interval(1.3, 0.9, 1.9)
PAYS, NONE, FASTER = Interval(2.0, 1.6, 2.5), Interval(0.9, 0.8, 0.99), Interval(1.2, 1.1, 1.3)
NAMES = ("cache-teacher", "channels-last", "allocator")


def candidate(name: str, predicted: float = 1.5, startup_s: float = 0.0) -> Candidate:
    return Candidate(name, {}, "bits", "decode", predicted, Gain(0.1, 0.2, "prior", startup_s))


def searched(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, Interval],
    held: set[str],
    start_s: float = 20.0,
    words: dict[str, list[Mark]] | None = None,
    full: str | None = None,
    names: tuple[str, ...] = NAMES,
    settings: dict[str, Any] | None = None,
    each_s: float = 25.0,
    to_search_s: float = 0.0,
) -> tuple[Search, Session, list[str]]:
    """A search among ``names`` on a script that takes ``start_s`` to its first step; the trials that were made."""
    session, findings, made = Session(), findings_of("decode"), list[str]()
    session.may_lend["search"] = to_search_s

    def measure(session: Session, _: Any, arm: str, __: Any) -> Trial:
        session.spent_s += each_s
        made.append(arm)
        found = NONE if arm.startswith("without") and arm not in answers else answers[arm]
        return Trial(arm, {}, "measured", interval=found, changes=1)

    def promising(_: Any, state: Search, __: Any) -> list[Candidate]:
        found = [candidate(name, 1.5 - 0.1 * k) for k, name in enumerate(names)]
        found = [replace(c, setting=(settings or {}).get(c.lever, {})) for c in found]
        return [c for c in found if (c.lever, canonical(c.setting)) not in state.tried]

    for where in (try_lever, together, without):
        monkeypatch.setattr(where, "measure", measure)
    for where in (try_lever, together):
        monkeypatch.setattr(where, "too_full", lambda *_: full)
    monkeypatch.setattr(module, "_promising", promising)
    monkeypatch.setattr(module, "refusals", lambda *_: [])
    monkeypatch.setattr(module, "usable", lambda *_: ([], []))
    monkeypatch.setattr(try_lever, "check_baseline", lambda _: None)
    monkeypatch.setattr(module, "candidates", lambda *_: [])
    monkeypatch.setattr(incumbent, "rediagnose", lambda *_: None)
    monkeypatch.setattr(together, "took_hold", lambda _: held)
    monkeypatch.setattr(together, "last_words", lambda _: words or {})
    baseline = cast(Any, SimpleNamespace(arm="baseline", findings=findings, start_s=start_s))
    state = Search(baseline.arm, findings)
    search(cast(Any, session), baseline, state, None)
    return state, session, made


def test_a_script_that_starts_slowly_gets_its_levers_in_one_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    state, session, made = searched(monkeypatch, {"together": PAYS, "without-allocator": NONE}, set(NAMES))
    assert made == ["together", "without-allocator", "without-channels-last"], "each may be needless: it is missed"
    assert [m.lever for m in state.moves] == list(NAMES) and state.cumulative == pytest.approx(2.0)
    assert all(r.kept and r.measured is None and "3 levers together 2.00x" in r.reason for r in state.results)
    assert [r.cumulative for r in state.results] == [None, None, 2.0], "no lever is thanked for the gain of all"
    assert "20.0 s to its first step" in state.notes[0] and "+ together" in session.lines[1]


def test_workers_that_go_as_a_lever_of_the_lot_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("cache-teacher", "loader-workers")
    made = {"settings": {"loader-workers": dict(HERE.setting)}, "names": names}
    state, _, _ = searched(monkeypatch, {"together": PAYS, "without-loader-workers": NONE}, set(names), **made)
    assert [m.lever for m in state.moves] == list(names) and [r.id for r in state.results] == list(names)
    state, _, _ = searched(monkeypatch, {"together": PAYS, "loader-workers": NONE}, {"cache-teacher"}, **made)
    assert [m.lever for m in state.moves] == ["cache-teacher"], "the loader kept them, and the rest paid"


def test_a_lever_that_is_not_missed_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    state, _, _ = searched(monkeypatch, {"together": PAYS, "without-allocator": FASTER}, set(NAMES))
    assert [m.lever for m in state.moves] == list(NAMES[:2]) and state.cumulative == pytest.approx(2.4)
    gone = next(r for r in state.results if r.id == "allocator")
    assert [r.cumulative for r in state.results if r.kept] == [None, pytest.approx(2.4)], "the total goes with the last"
    assert not gone.kept and "it came in with others, and the step is 1.20x as fast without it" in gone.reason


@pytest.mark.parametrize(("ratio", "stays"), [(LIKELY + 0.15, False), (LIKELY - 0.02, True), (0.9, True)])
def test_what_was_never_measured_by_itself_goes_where_the_plan_is_likelier_faster_without_it(
    ratio: float, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsure = Interval(ratio, ratio / 1.3, ratio * 1.3, 0.98, 6)
    state, session, _ = searched(monkeypatch, {"together": PAYS, "without-allocator": unsure}, set(NAMES))
    assert [m.lever for m in state.moves] == list(NAMES if stays else NAMES[:2])
    assert state.cumulative == pytest.approx(2.0), "nothing is claimed that is not certain"
    told = next(r for r in state.results if r.id == "allocator")
    assert told.kept is stays and ("likelier slower than faster: without it 1.20x [0.92, 1.56]" in told.reason) != stays
    assert ("  allocator  1.20x without it: put back" in session.lines) != stays


def test_a_lever_that_did_not_take_hold_is_no_part_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"together": PAYS, "without-cache-teacher": NONE, "channels-last": NONE, "allocator": NONE}
    state, _, made = searched(monkeypatch, answers, {"cache-teacher"})
    assert [m.lever for m in state.moves] == ["cache-teacher"] and "without-cache-teacher" not in made
    (alone,) = (r for r in state.results if r.kept)
    assert alone.measured == PAYS and state.moves[0].gain == PAYS.ratio, "the trial was about it alone"
    assert made[1] == "channels-last", "others are tried by themselves"


def test_what_promises_least_of_those_that_are_kept_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"together": PAYS, "without-channels-last": FASTER, "allocator": NONE}
    state, _, made = searched(monkeypatch, answers, {"cache-teacher", "channels-last"})
    assert made == ["together", "allocator", "without-channels-last"], "what promises something beside them comes first"
    assert [m.lever for m in state.moves] == ["cache-teacher"]


def test_what_computes_in_another_type_is_doubted_before_anything_else_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("cache-teacher", "autocast", "allocator")
    answers = {"together": PAYS, "without-autocast": FASTER, "allocator": NONE}
    state, _, made = searched(monkeypatch, answers, {"cache-teacher", "autocast"}, names=names)
    assert made == ["together", "without-autocast", "allocator"]
    assert [m.lever for m in state.moves] == ["cache-teacher"]


def test_a_doubtful_member_is_lent_the_time_of_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("cache-teacher", "autocast", "allocator")
    for to_search_s, doubted in ((0.0, []), (100.0, ["without-autocast"])):
        answers = {"together": PAYS}
        _, _, made = searched(monkeypatch, answers, set(names), names=names, each_s=70.0, to_search_s=to_search_s)
        assert made == ["together", *doubted], "not the allocator: it is not doubtful by its kind"


def test_a_lever_that_says_why_it_changes_nothing_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"channels-last": [Mark("lever", "channels-last", "refused", 0, "it is fused")]}
    answers = {"together": PAYS, "without-allocator": NONE}
    state, _, made = searched(monkeypatch, answers, {"cache-teacher", "allocator"}, words=words)
    assert made == ["together", "without-allocator"], "what promises most is not doubted"
    told = next(r for r in state.results if r.id == "channels-last")
    assert not told.kept and told.measured is None and told.reason == "refused: it is fused"


def test_where_all_together_do_not_pay_each_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"together": NONE, "cache-teacher": FASTER, "channels-last": NONE, "allocator": NONE}
    state, session, made = searched(monkeypatch, answers, set(NAMES))
    assert made[:2] == ["together", "cache-teacher"] and [m.lever for m in state.moves] == ["cache-teacher"]
    assert any("they are tried one by one" in line for line in session.lines)


def test_in_doubt_the_lot_is_put_to_the_proof_if_nothing_else_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"together": DOUBT, "cache-teacher": NONE, "channels-last": NONE, "allocator": NONE}
    state, session, made = searched(monkeypatch, answers, set(NAMES))
    assert made[:2] == ["together", "cache-teacher"] and state.guessed
    assert [m.lever for m in state.moves] == list(NAMES) and cast(Any, state.incumbent) == "best-guess"
    assert [r.id for r in state.results if r.kept] == list(NAMES) and state.cumulative == pytest.approx(1.3)
    assert "put to the proof" in session.lines[-1] and "certain of nothing" in state.notes[-1]
    put_back(state)
    assert not any(r.kept or r.cumulative for r in state.results)
    assert all("no plan came" in r.reason for r in state.results if r.id in NAMES)


@pytest.mark.parametrize(("ratio", "lot"), [(1.2, True), (1.4, False)])
def test_in_doubt_more_levers_go_to_the_proof_where_they_promise_no_less(
    ratio: float, lot: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Interval(ratio, 0.95, 1.5)
    answers = {"together": DOUBT, "cache-teacher": alone, "channels-last": NONE, "allocator": NONE}
    state, _, _ = searched(monkeypatch, answers, set(NAMES))
    assert alone.low > DOUBT.low and [m.lever for m in state.moves] == (list(NAMES) if lot else ["cache-teacher"])


def test_what_was_kept_is_no_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"together": DOUBT, "cache-teacher": FASTER, "channels-last": NONE, "allocator": NONE}
    state, _, _ = searched(monkeypatch, answers, set(NAMES))
    assert [m.lever for m in state.moves] == ["cache-teacher"] and not state.guessed
    put_back(state)
    assert any(r.kept for r in state.results), "it was certain"


def test_what_does_not_fit_the_card_is_no_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"together": DOUBT, "cache-teacher": DOUBT, "channels-last": NONE, "allocator": NONE}
    state, _, _ = searched(monkeypatch, answers, set(NAMES), full="it holds 97 % of the card's memory")
    assert state.moves == [] and not state.guessed


def test_a_script_that_starts_quickly_has_its_levers_measured_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, made = searched(monkeypatch, dict.fromkeys(NAMES, NONE), set(NAMES), start_s=0.0)
    assert made[0] == "cache-teacher"


def test_few_trials_depend_on_the_start_and_on_what_is_wanted() -> None:
    def few(start_s: float, wanted: int, name: str = "channels-last") -> bool:
        state = Search(cast(Any, "baseline"), findings)
        found = [candidate(name)] * wanted
        baseline = cast(Any, SimpleNamespace(start_s=start_s, findings=findings))
        return few_trials(cast(Any, Session()), baseline, state, found, MEASURE_S)

    findings = findings_of("decode")
    assert few(20.0, 2) and not few(10.0, 2), "70 s hold one trial of 37 s, and two of 27 s"
    assert few(10.0, 3) and not few(0.0, 10), "with four trials one by one is the better way"
    short = cast(Any, findings.script.loader)
    findings = replace(
        findings,
        script=replace(findings.script, loader=replace(short, batches_per_epoch=30)),
        throughput=replace(findings.throughput, step_s=0.2),
    )
    assert not few(0.0, 3) and few(0.0, 3, "cache-teacher"), "two epochs of 6 s warm the cache in each trial"
    findings = replace(findings, throughput=replace(findings.throughput, step_s=1.0))
    assert few(0.0, 2), "70 s hold one trial of 60 steps"


def test_what_can_be_on_together() -> None:
    best = [candidate(n) for n in ("channels-last", "optimizer-fused", "cache-sample", "checkpoint-async", "allocator")]
    best += [candidate("compile-model", startup_s=30.0), candidate(f"{KNOB}batch_size")]
    assert [c.lever for c in lot(best)] == ["channels-last", "allocator"]


def test_a_member_of_the_lot_is_shown_without_a_number_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    state, _, _ = searched(monkeypatch, {"together": PAYS, "without-allocator": NONE}, set(NAMES))
    report = cast(Any, SimpleNamespace(share_of_roof=lambda _: None))
    first, last = lever_line(report, state.results[0]).plain, lever_line(report, state.results[-1]).plain
    assert "2.00x" not in first and "2.00x" in last and first.startswith(" + cache-teacher")


def test_what_computes_in_another_type_is_doubted_first() -> None:
    found = [candidate("autocast", 1.3), candidate("channels-last", 1.2), candidate("allocator", 1.1)]
    found.append(candidate("cache-teacher", 1.5))
    state = Search(cast(Any, "baseline"), findings_of("decode"))
    state.moves, state.lot = [Move(c.lever, {}, "maths") for c in found], found
    order: list[str] = []
    while (move := least_of_lot(state)) is not None:
        state.doubted.add(move.lever)
        order.append(move.lever)
    assert order == ["autocast", "allocator", "channels-last"], "what promised most is not doubted"


@pytest.mark.parametrize(
    ("cache", "workers", "first"),
    [("cache-decode", 2, "loader-workers"), ("cache-decode", 0, "allocator"), ("cache-teacher", 2, "allocator")],
)
def test_workers_are_doubted_first_where_a_cache_took_their_work(cache: str, workers: int, first: str) -> None:
    found = [candidate("loader-workers", 1.3), candidate("allocator", 1.1), candidate(cache, 1.2)]
    found.append(candidate("channels-last", 1.5))
    state = Search(cast(Any, "baseline"), findings_of("decode"))
    settings = {"loader-workers": {"workers": workers}}
    state.moves, state.lot = [Move(c.lever, settings.get(c.lever, {}), "maths") for c in found], found
    move = least_of_lot(state)
    assert move is not None and move.lever == first and is_doubtful(state, move) == (first == "loader-workers")


@pytest.mark.parametrize(
    ("lever", "step_s", "epochs"),
    [("cache-decode", 0.1, 4), ("cache-teacher", 0.05, 6), ("cache-teacher", 0.1, 5), ("cache-decode", 0.2, 2),
     ("cache-decode", 0.4, 2), ("cache-teacher", 0.6, 0), ("channels-last", 0.1, 0)],
)  # fmt: skip
def test_a_cache_is_warmed_for_epochs_that_can_be_waited_for(lever: str, step_s: float, epochs: int) -> None:
    findings = findings_of("decode")
    loader = replace(cast(Any, findings.script.loader), batches_per_epoch=30)
    findings = replace(
        findings,
        script=replace(findings.script, loader=loader),
        throughput=replace(findings.throughput, step_s=step_s),
    )
    assert warm_steps([Move(lever, {}, "maths")], findings) == 30 * epochs


@pytest.mark.parametrize("lever", ["cache-decode", "cache-sample"])
@pytest.mark.parametrize(("known", "replayed"), [({"sample_bytes": 1000}, True), ({"sample_bytes": None}, False)])
def test_a_long_epoch_is_cut_where_the_samples_are_known_to_fit(
    lever: str, known: dict[str, Any], replayed: bool
) -> None:
    """What a few batches show says nothing of data of which a part alone can be kept."""
    findings = findings_of("decode")
    loader = replace(cast(Any, findings.script.loader), batches_per_epoch=3000, **known)
    findings = replace(
        findings,
        script=replace(findings.script, loader=loader),
        throughput=replace(findings.throughput, step_s=0.1),
    )
    assert needs_replay(lever, findings) == replayed and needs_replay("cache-calls", findings)
    assert not needs_replay("channels-last", findings)
