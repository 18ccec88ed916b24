"""Verdicts of bench/quality.py, and what the benches read of a training's lines."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest
import quality
from loops import FOLDER, LOOPS, difference
from quality import evaluation
from quality_scores import joined
from quality_verdict import Trials, by_identity, by_seed, judged, time_to_quality, weighted_eer, weights_of
from results import without_folders
from self_tuned import KEPT, by_hand
from turns import STEP

from hotlap_workloads.catalogue import NAMES, find_workload
from hotlap_workloads.engine.machine import Machine
from hotlap_workloads.engine.overrides import override, parse_pairs
from hotlap_workloads.engine.throughput import progress_line
from hotlap_workloads.parts.verification import eer

PEOPLE = 24


def population(noise: float, seed: int, person_noise: float = 0.0) -> tuple[Trials, np.ndarray]:
    """All pairs of four recordings of each person; ``person_noise`` is an error that all trials of a person share."""
    random = np.random.default_rng(seed)
    owner = np.repeat(np.arange(PEOPLE), 4)
    left, right = np.triu_indices(len(owner), 1)
    trials = Trials(owner[left], owner[right], owner[left] == owner[right])
    common = person_noise * random.standard_normal(PEOPLE)
    scores = trials.same + noise * random.standard_normal(len(left)) + common[trials.left] + common[trials.right]
    return trials, scores


def test_the_weighted_eer_is_the_eer_of_repeated_trials() -> None:
    trials, scores = population(0.6, 1)
    random = np.random.default_rng(2)
    scores = np.round(scores, 1)  # with ties
    assert weighted_eer(scores, trials.same, np.ones(len(scores))) == pytest.approx(eer(scores, trials.same))
    times = random.integers(0, 4, len(scores))
    repeated = np.repeat(np.arange(len(scores)), times)
    assert weighted_eer(scores, trials.same, times.astype(float)) == pytest.approx(
        eer(scores[repeated], trials.same[repeated])
    )


def test_equals_are_proved_and_the_worse_refuted_and_few_are_neither() -> None:
    trials, _ = population(0.5, 0)
    slow = [population(0.5, seed)[1] for seed in (1, 2, 3)]
    same = [population(0.5, seed)[1] for seed in (4, 5, 6)]
    worse = [population(0.8, seed)[1] for seed in (4, 5, 6)]
    proved = by_identity(trials, slow, same, 0.05, 200)
    assert proved.verdict == "proved" and proved.lower < proved.worse < proved.upper < 0.05
    refuted = by_identity(trials, slow, worse, 0.05, 200)
    assert refuted.verdict == "refuted" and refuted.worse > refuted.lower > 0.05
    assert by_identity(trials, slow, same, 0.0, 200).verdict == "not proved"
    assert by_identity(trials, slow, slow, 0.0, 200) == by_identity(trials, slow, slow, 0.0, 200), "always the same"


def test_people_are_resampled_not_trials() -> None:
    """Where a model errs on persons, the bound is as wide as other people would make it, and not as trials are many."""
    trials, good = population(0.3, 1)
    bad = population(0.3, 2, person_noise=0.8)[1]
    found = by_identity(trials, [good], [bad], 0.0, 200)
    width = found.upper - found.lower
    others = [eer(population(0.3, seed, person_noise=0.8)[1], trials.same) for seed in range(100, 140)]
    between_people = 2 * 1.645 * np.std(others)
    random = np.random.default_rng(3)
    counts = [np.bincount(random.integers(len(bad), size=len(bad)), minlength=len(bad)) for _ in range(200)]
    resampled = [weighted_eer(bad, trials.same, count.astype(float)) for count in counts]
    by_trial = np.quantile(resampled, 0.95) - np.quantile(resampled, 0.05)
    assert 0.6 < width / between_people < 1.7 and by_trial < 0.75 * width


def test_a_trial_counts_as_often_as_its_people_were_drawn() -> None:
    trials = Trials(np.array([0, 0, 1, 2]), np.array([0, 1, 2, 2]), np.array([True, False, False, True]))
    assert weights_of(trials, np.array([2.0, 3.0, 0.0])).tolist() == [2.0, 6.0, 0.0, 0.0]


def test_without_identities_the_seeds_judge() -> None:
    assert by_seed([0.100, 0.101, 0.099], [0.100, 0.1005, 0.0995], 0.003, higher=False).verdict == "proved"
    assert by_seed([0.100, 0.101, 0.099], [0.12, 0.121, 0.119], 0.003, higher=False).verdict == "refuted"
    better = by_seed([0.50, 0.51, 0.49], [0.60, 0.61, 0.59], 0.005, higher=True)
    assert better.verdict == "proved" and better.worse == pytest.approx(-0.1)
    one = by_seed([0.1], [0.1], 0.5, higher=False)
    assert one.verdict == "not proved" and one.upper is None
    spread = np.sqrt(0.001**2 * 2 / 3) * 2.131847  # Student's t, 4 degrees of freedom, one-sided 95 %
    found = by_seed([0.100, 0.101, 0.099], [0.100, 0.101, 0.099], 0.01, higher=False)
    assert found.upper == pytest.approx(spread, rel=1e-4) and found.lower == pytest.approx(-spread, rel=1e-4)


def test_a_verdict_needs_its_whole_interval() -> None:
    assert judged(0.0, -0.1, 0.1, 0.1, "").verdict == "proved"
    assert judged(0.05, -0.1, 0.11, 0.1, "").verdict == "not proved"
    assert judged(0.3, 0.11, 0.4, 0.1, "").verdict == "refuted"


def test_time_to_quality() -> None:
    slow = [[(10.0, 0.3), (20.0, 0.2), (30.0, 0.1)], [(10.0, 0.3), (20.0, 0.1), (30.0, 0.1)], [(10, 0.3), (32.0, 0.13)]]
    fast = [[(2.0, 0.3), (4.0, 0.11)], [(2.0, 0.1), (4.0, 0.2)], [(3.0, 0.11)]]
    found = time_to_quality(slow, fast, higher=False)
    assert found["target"] == pytest.approx(0.11)
    assert found["slow_s"] == [30.0, 20.0, 32.0] and found["fast_s"] == [4.0, 2.0, 3.0] and found["factor"] == 10.0
    never = time_to_quality(slow, [*fast[:2], [(3.0, 0.2)]], higher=False)
    assert never["fast_s"] == [4.0, 2.0, None] and never["factor"] is None
    assert time_to_quality([[(8.0, 0.5)]], [[(1.0, 0.4), (2.0, 0.6)]], higher=True)["factor"] == 4.0


def test_lines_of_a_training() -> None:
    assert evaluation("Step 30  eer 0.1250  min_dcf 0.5000\n") == (30, {"eer": 0.125, "min_dcf": 0.5})
    line = progress_line(930.0, 12.34, 3, 1050, 22744, 4000.0)
    assert evaluation(line) is None and STEP.match(line)[1] == "1050"
    assert evaluation("Going on after step 30.") is None


@pytest.mark.parametrize("name", NAMES)
def test_by_hand_keeps_what_would_be_another_training(name: str) -> None:
    for machine in (Machine(2), Machine(16, (9, 0), "H200")):
        slow, fast = (find_workload(name).presets[preset].make(machine) for preset in ("slow", "fast"))
        held = override(fast, parse_pairs(by_hand(slow)), "--set")
        held.check()
        assert all(getattr(held, field) == getattr(slow, field) for field in KEPT)
        assert (held.batch_size, held.evaluate_every_epochs) == (slow.batch_size, slow.evaluate_every_epochs)


def test_losses_are_compared_bit_for_bit_and_by_size() -> None:
    assert difference([1.0, 2.0], [1.0, 2.0]) == {"equal_bits": True, "largest_relative_difference": 0.0}
    found = difference([1.0, 2.0], [1.0, 2.2])
    assert not found["equal_bits"] and found["largest_relative_difference"] == pytest.approx(0.1)
    with pytest.raises(ValueError, match="2 losses"):
        difference([1.0, 2.0], [1.0])


def test_whom_trials_join_is_one_person() -> None:
    people = joined(7, [0, 1, 3, 5, 2], [1, 2, 4, 6, 3], [1, 1, 1, 0, 0])
    assert people[0] == people[1] == people[2] and people[3] == people[4]
    assert len({people[0], people[3], people[5], people[6]}) == 4


def test_every_loop_is_a_file() -> None:
    assert all((FOLDER / file).is_file() for file in LOOPS.values())


def test_what_was_trained_is_kept_and_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[tuple[str, int]] = []

    def train(_: object, preset: str, seed: int, out: Path) -> dict[str, object]:
        trained.append((preset, seed))
        return {"seed": seed, "wall_s": 1.5}

    monkeypatch.setattr(quality, "trained", train)
    scores = {"slow": {"scores": np.arange(3.0)}, "fast": None}
    asked = argparse.Namespace(
        workload="tiny_detr", keep=tmp_path / "kept", set=["a=1"], epochs=2, steps=0, heavy=False, data=None
    )
    for _ in range(2):
        for preset in ("slow", "fast"):
            monkeypatch.setattr(quality, "scored", lambda *_, preset=preset: scores[preset])
            run, found = quality.once(asked, preset, 1)
            assert run == {"seed": 1, "wall_s": 1.5}
            assert (found is None) == (preset == "fast") and (found is None or found["scores"].tolist() == [0, 1, 2])
    assert trained == [("slow", 1), ("fast", 1)]
    with pytest.raises(SystemExit, match="keep this one elsewhere"):
        quality.once(argparse.Namespace(**{**vars(asked), "epochs": 3}), "slow", 1)
    asked.keep = None
    quality.once(asked, "fast", 2)
    assert trained[-1] == ("fast", 2) and len(list(tmp_path.rglob("*.json"))) == 2


def test_where_files_lie_is_not_told(tmp_path: Path) -> None:
    weights = tmp_path / "checkpoint.pt"
    weights.touch()
    assert without_folders([f"musan={tmp_path}", f"teacher_weights={weights}", "size=64"]) == ["size=64"]
