"""Whole runs over seeds, of a script that writes a training's timeline itself: no torch, no sandbox, seconds."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from hotlap.lap.options import Options, Silent
from hotlap.lap.prove_seeds import Request, prove_seeds
from hotlap.records.codec import dumps, loads
from hotlap.records.errors import HotlapError
from hotlap.records.machine import Machine
from hotlap.records.plan import Move, Plan
from hotlap.records.run_folder import RunFolder
from hotlap.records.seed_proof import SeedProof, Stop
from hotlap.trial import abreast

MACHINE = Machine("Linux", "a CPU", 2, 8 << 30, 4 << 30, [], "3.11", "2.13")
FAKE = Path(__file__).with_name("seed_train.py")
EER = re.compile(r"EER: ([\d.]+)")


@pytest.fixture
def prove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(abreast, "TURN_S", 0.2)

    def go(*words: str, preserves: str = "bits", seeds: int = 1, **more: object) -> SeedProof:
        lever = {"bits": "gc-freeze", "maths": "autocast"}[preserves]
        plan = Plan([Move(lever, {}, preserves)])  # type: ignore[arg-type]
        options = Options([sys.executable, str(FAKE), *words], budget_s=0.0, sandbox=False, seeds=seeds)
        folder = RunFolder.create("train.py", tmp_path / "runs")
        proof = prove_seeds(Request(options, plan, **more), MACHINE, folder, Silent(), lambda p: "")  # type: ignore[arg-type]
        written = folder.read("proof.json", SeedProof)
        assert written == proof == loads(SeedProof, dumps(proof)), "written after every seed, strict"
        return proof

    monkeypatch.setattr("hotlap.inject.door.levers", lambda: {"gc-freeze": _NoEnvironment, "autocast": _NoEnvironment})
    return go


class _NoEnvironment:
    @staticmethod
    def environment(setting: object) -> dict[str, str]:
        return {}


@pytest.mark.flaky(reruns=2)  # of its speedup it asks that the interval exclude 1
def test_equal_bits_over_seeds_in_the_command(prove) -> None:  # type: ignore[no-untyped-def]
    proof = prove("seed={seed}", seeds=3, metric=EER, lower_is_better=True)
    assert (proof.verdict, proof.seeded_by, proof.speedup_of) == ("proved", "command", "whole run")
    assert [runs.seed for runs in proof.seeds] == [1, 2, 3]
    assert [runs.first for runs in proof.seeds] == ["baseline", "candidate", "baseline"]
    assert [runs.baseline.metric for runs in proof.seeds] == [5.01, 5.02, 5.03]
    assert proof.seeds[0].command[-1] == "seed=1" and proof.command[-1] == "seed={seed}"
    assert proof.speedup is not None and 1.5 < proof.speedup.ratio < 3.5 and proof.more == []


def test_seeds_are_offset_where_the_command_takes_none(prove) -> None:  # type: ignore[no-untyped-def]
    proof = prove(first_seed=4, metric=EER)
    assert proof.seeded_by == "offset" and [runs.baseline.metric for runs in proof.seeds] == [5.04]


def test_a_broken_promise_of_bits_is_seen_at_once(prove) -> None:  # type: ignore[no-untyped-def]
    proof = prove("differs=5", "steps=400", seeds=3)
    assert (proof.verdict, proof.quality.first_difference, len(proof.seeds)) == ("refuted", 5, 1)
    assert proof.seeds[0].baseline.steps < 100, "the rest of the run was spared"
    assert any("Stopped after 1 of 3 seeds" in note for note in proof.notes)


def test_a_plan_that_makes_it_slower_ends_the_matter(prove) -> None:  # type: ignore[no-untyped-def]
    proof = prove("seed={seed}", "candidate_s=0.2", seeds=6)
    assert (proof.speed_verdict, proof.verdict, proof.quality.verdict) == ("refuted", "refuted", "proved")
    seeds = len(proof.seeds)  # three, and more where a neighbour disturbs them
    assert 3 <= seeds < 6 and any(f"Stopped after {seeds} of 6 seeds: the plan is slower." in n for n in proof.notes)


def test_a_script_that_does_not_repeat_itself_is_judged_by_its_spread(prove) -> None:  # type: ignore[no-untyped-def]
    proof = prove("repeats=no", seeds=2)
    assert (proof.quality.kind, proof.quality.verdict) == ("non-inferior", "proved")
    assert any("does not repeat itself" in note for note in proof.notes)
    assert {run.steps for runs in proof.seeds for run in (runs.baseline, runs.candidate)} == {20}


def test_a_crash_under_the_plan_refutes_it(prove) -> None:  # type: ignore[no-untyped-def]
    proof = prove("crash=7", "steps=200", seeds=2)
    assert (proof.verdict, len(proof.seeds)) == ("refuted", 1)
    assert any("the plan's run failed after 7 steps" in note and "the plan broke it" in note for note in proof.notes)


def test_a_script_that_fails_by_itself_is_an_error(prove) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(HotlapError, match="made no optimiser step") as failed:
        prove("steps=none")
    assert "output.txt" in failed.value.hint


def test_a_metric_that_is_never_printed_shows_what_was(prove) -> None:  # type: ignore[no-untyped-def]
    proof = prove(seeds=2, metric=re.compile("accuracy (.*)"))
    assert proof.verdict == "not proved" and len(proof.seeds) == 1
    assert "'accuracy (.*)' matched no number" in proof.notes[0] and proof.notes[1] == "| EER: 5.01"


def test_a_run_that_is_stopped_is_judged_by_what_it_had_printed(prove) -> None:  # type: ignore[no-untyped-def]
    proof = prove("every=40", "steps=500", stop=Stop(steps=44), metric=EER, first_seed=2)
    assert proof.seeds[0].baseline.status == "stopped"
    assert proof.seeds[0].baseline.metric == proof.seeds[0].candidate.metric == 5 + 0.01 * 2 + 40


def test_seeds_that_change_nothing_end_it(prove) -> None:  # type: ignore[no-untyped-def]
    proof = prove("by=nothing", "differs=5", preserves="maths", seeds=4)
    assert proof.verdict == "not proved" and len(proof.seeds) == 2
    assert "{seed}" in proof.more[0]


def test_a_lever_without_effect_is_told(prove) -> None:  # type: ignore[no-untyped-def]
    proof = prove("lever=no-effect", stop=Stop(steps=10))
    assert proof.speedup_of == "after the first step" and "gc-freeze: no effect (nothing there)." in proof.notes


def test_where_memory_does_not_hold_both_they_run_one_after_the_other(prove, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    hold = tmp_path / "held"
    proof = prove(f"hold={hold}", "steps=40")
    assert (proof.quality.verdict, proof.seeds[0].side_by_side) == ("proved", False)
    assert {run.steps for run in (proof.seeds[0].baseline, proof.seeds[0].candidate)} == {40}, "of this try"
    assert "Both arms together ran out of memory" in proof.notes[0]


@pytest.mark.parametrize("device", ["H100", "cpu"])
def test_ranks_on_several_devices_are_not_frozen(prove, device: str) -> None:  # type: ignore[no-untyped-def]
    proof = prove("ranks=2", f"device={device}", "steps=40")
    alone = device != "cpu"
    assert (proof.quality.verdict, proof.seeds[0].side_by_side) == ("proved", not alone)
    assert {run.steps for run in (proof.seeds[0].baseline, proof.seeds[0].candidate)} == {40}
    assert any(note.startswith("Ranks on several devices") for note in proof.notes) is alone
