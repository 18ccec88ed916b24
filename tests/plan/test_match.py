"""Which levers become candidates, which are refused, and in what order they are tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotlap.lever.contract import Gain
from hotlap.lever.registry import levers
from hotlap.plan.match import Candidate, candidates, canonical, refusals
from hotlap.plan.order import order
from hotlap.plan.predict import combined_ratio, predicted_ratio, within_roof
from hotlap.records.findings import Roof
from hotlap.records.plan import Move
from hotlap.testing.lever_kit import findings_of, machine_of

ALL = {"bits", "maths", "distribution"}
SINS = findings_of("decode", "precision", "memory-format", "optimizer-loop", "checkpoint-blocking")
NONE: set[str] = set()


def ids(found: list[Candidate]) -> set[str]:
    return {c.lever for c in found}


def test_only_levers_with_evidence() -> None:
    assert candidates(findings_of("nothing-to-gain"), machine_of(), ALL, NONE, NONE, [], set()) == []
    found = candidates(findings_of("precision"), machine_of(), ALL, NONE, NONE, [], set())
    assert ids(found) == {"autocast", "compile-model"}
    assert all(c.finding_cause == "precision" and c.predicted > 1 for c in found)


def test_allow_only_and_skip() -> None:
    bits = candidates(SINS, machine_of(), {"bits"}, NONE, NONE, [], set())
    assert bits and all(c.preserves == "bits" for c in bits)
    assert ids(candidates(SINS, machine_of(), ALL, {"autocast"}, NONE, [], set())) == {"autocast"}
    assert "autocast" not in ids(candidates(SINS, machine_of(), ALL, NONE, {"autocast"}, [], set()))


def test_kept_levers_and_their_conflicts_are_left_out() -> None:
    done = [Move("channels-last", {}, "maths"), Move("loader-workers", {}, "distribution")]
    found = ids(candidates(SINS, machine_of(), ALL, NONE, NONE, done, set()))
    assert not found & {"channels-last", "optimizer-fused", "loader-workers", "background-fetch"}
    assert ("optimizer-fused", "It cannot be on together with channels-last.") in refusals(
        SINS, machine_of(), ALL, NONE, NONE, done
    )


def test_conflicts_hold_in_both_directions() -> None:
    known = levers()
    for lever in known.values():
        for other in lever.CONFLICTS:
            assert lever.ID in known[other].CONFLICTS


def test_one_setting_at_a_time() -> None:
    tried: set[tuple[str, str]] = set()
    seen = []
    while found := candidates(SINS, machine_of(), ALL, {"loader-workers"}, NONE, [], tried):
        assert len(found) == 1
        seen.append(canonical(found[0].setting))
        tried.add((found[0].lever, seen[-1]))
    assert len(seen) == len(set(seen)) > 1


def test_refusals_have_reasons() -> None:
    found = dict(refusals(SINS, machine_of(cpu_flags=["avx2"], compiler=None), {"bits", "maths"}, NONE, NONE))
    assert "bf16" in found["autocast"] and "compiler" in found["compile-model"]
    assert "--allow" in found["loader-workers"]
    assert "cache-decode" not in found


def candidate(lever: str, predicted: float, preserves: str = "bits", startup_s: float = 0.0) -> Candidate:
    return Candidate(lever, {}, preserves, "decode", predicted, Gain(0.01, 0.03, "prior", startup_s))


def test_best_first_and_safest_on_a_tie() -> None:
    found = order([candidate("a", 1.2, "distribution"), candidate("b", 1.2, "maths"), candidate("c", 1.2),
                   candidate("d", 3.0, "distribution")])  # fmt: skip
    assert [c.lever for c in found] == ["d", "c", "b", "a"]


def test_compilation_only_where_it_pays() -> None:
    slow = candidate("compile-model", 2.0, startup_s=34.0)
    near, far = candidate("optimizer-fused", 1.1), candidate("autocast", 1.5)
    assert order([slow, near], budget_s=100.0) == [slow, near], "it promises ten times as much"
    assert order([slow, far], budget_s=100.0) == [far, slow], "it comes last"
    assert order([slow, near], budget_s=60.0) == [near], "the start alone is more than half of it"
    assert order([slow, far], budget_s=180.0, again=["autocast"]) == [far, slow], "a second look costs less"
    assert order([far, near], budget_s=180.0, again=["autocast"]) == [near, far]
    assert order([slow, far], budget_s=600.0) == [far, slow], "given up, it leaves time for nothing"
    brief = candidate("cudnn-benchmark", 2.0, startup_s=5.0)
    assert order([far, brief], budget_s=180.0) == [brief, far]
    assert order([slow], steps=1000) == [] and order([slow], steps=2000) == [slow]


def test_prediction() -> None:
    assert predicted_ratio(0.1, Gain(0.04, 0.06, "prior")) == 2.0
    assert predicted_ratio(0.0, Gain(0.0, 0.0, "prior")) == 1.0
    half = Gain(0.05, 0.05, "prior")
    assert combined_ratio(0.1, [half, half]) == 4.0 and combined_ratio(0.1, []) == 1.0


def test_numeric_levers_promise_no_more_than_the_roof_showed() -> None:
    found = findings_of("precision", "checkpoint-blocking")  # 30 ms of compute in a step of 100 ms
    roof = Roof(None, 0.028, 0.28, "", levers=["autocast"])

    def autocast_gain(roof: Roof | None) -> Gain:
        sins = replace(found, roof=roof)
        return next(c.gain for c in candidates(sins, machine_of(), ALL, NONE, NONE, [], set()) if c.lever == "autocast")

    free = autocast_gain(None)
    bound = autocast_gain(roof)
    assert bound.high_s == pytest.approx(0.002 + 0.003)
    assert bound.low_s <= bound.high_s < free.high_s
    assert autocast_gain(replace(roof, levers=["channels-last"])) == free, "it was not on at the roof"
    assert autocast_gain(replace(roof, step_s=0.001)) == free, "the roof leaves more room than it promises"


def test_what_lies_beside_the_compute_is_not_held_to_the_roof() -> None:
    found = findings_of("gc-collect")  # 30 ms of 100, none of them among the 30 ms of compute
    collections = replace(found.findings[0], phase="gc")
    roof = Roof(None, 0.029, 0.29, "", levers=["gc-freeze"])
    found = replace(found, findings=[collections], roof=roof)
    gains = {c.lever: c.gain for c in candidates(found, machine_of(), ALL, NONE, NONE, [], set())}
    assert gains["gc-freeze"].low_s > 0.025
    assert within_roof("gc-freeze", gains["gc-freeze"], found, "forward").high_s < 0.005
