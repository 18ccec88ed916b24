"""Arms whose steps hold different numbers of samples: throughput and losses on one axis."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hotlap.proof.equal_samples import at_equal_samples
from hotlap.proof.noninferior import judge
from hotlap.proof.per_sample import per_sample
from hotlap.proof.speedup import ratio_interval
from hotlap.records.trials import Window


def learning(batch: int, samples: int, seed: int, scale: float = 1.0) -> tuple[list[float], list[int]]:
    """A loss that depends on the samples seen alone, with the noise of a batch."""
    noise = np.random.default_rng(seed)
    seen = np.arange(samples // batch) * batch + batch / 2
    loss = 0.5 + 2.5 * np.exp(-seen / 400) + 0.01 / math.sqrt(batch) * noise.standard_normal(len(seen))
    return [scale * float(value) for value in loss], [batch] * len(seen)


def arms(baseline: int, candidate: int, scale: float = 1.0) -> tuple[dict[str, list[list[float]]], dict[str, list]]:
    told = {
        "baseline": [learning(baseline, 4800, seed) for seed in range(3)],
        "candidate": [learning(candidate, 4800, seed + 9, scale) for seed in range(3)],
    }
    return {a: [curve for curve, _ in t] for a, t in told.items()}, {a: [n for _, n in t] for a, t in told.items()}


@pytest.mark.parametrize(("baseline", "candidate"), [(24, 48), (48, 24), (24, 40), (40, 24)])
def test_the_same_learning_per_sample_is_the_same_quality(baseline: int, candidate: int) -> None:
    losses, samples = arms(baseline, candidate)
    equal = at_equal_samples(losses, samples)
    assert equal.width == max(baseline, candidate) and not equal.problem
    assert {len(c) for curves in equal.curves.values() for c in curves} == {4800 // equal.width}
    found = judge(equal.curves["baseline"], equal.curves["candidate"], 0.02, paired=False)
    assert found.verdict == "proved" and abs(found.delta_frac or 1.0) < 0.005
    by_steps = judge(losses["baseline"], losses["candidate"], 0.02, paired=False)
    if baseline < candidate:  # what equal steps would have said: the larger batch has seen more
        assert (by_steps.delta_frac or 0.0) < -0.005


def test_a_stretch_is_the_mean_loss_of_its_samples() -> None:
    losses = {"baseline": [[4.0, 2.0, 2.0, 1.0, 8.0]], "candidate": [[3.0, 1.0, 1.0]]}
    samples = {"baseline": [[2, 2, 1, 1, 2]], "candidate": [[4, 4, 1]]}
    equal = at_equal_samples(losses, samples)
    assert equal.curves["candidate"] == [[3.0, 1.0]]
    assert equal.curves["baseline"][0] == pytest.approx([3.0, (2.0 + 1.0 + 2 * 8.0) / 4])


def test_equal_steps_stay_what_they_are() -> None:
    losses = {"baseline": [[0.1, 0.2, 0.3]], "candidate": [[0.3, math.nan]]}
    equal = at_equal_samples(losses, {"baseline": [[8, 8, 8]], "candidate": [[8, 8]]})
    assert equal.curves["baseline"] == [[0.1, 0.2]] and equal.width == 8
    assert equal.curves["candidate"][0][0] == 0.3 and math.isnan(equal.curves["candidate"][0][1])


def test_a_loss_that_is_not_a_number_stays_visible() -> None:
    losses = {"baseline": [[1.0] * 8], "candidate": [[1.0, 1.0, math.nan, 1.0]]}
    equal = at_equal_samples(losses, {"baseline": [[4] * 8], "candidate": [[8] * 4]})
    assert equal.curves["candidate"][0][:2] == [1.0, 1.0] and math.isnan(equal.curves["candidate"][0][2])
    mixed = at_equal_samples(losses, {"baseline": [[4] * 8], "candidate": [[6, 8, 8, 8]]})
    assert any(math.isnan(value) for value in mixed.curves["candidate"][0])


@pytest.mark.parametrize(("baseline", "candidate"), [(24, 48), (24, 16)])
def test_a_loss_that_grows_with_the_batch_is_not_compared(baseline: int, candidate: int) -> None:
    losses, samples = arms(baseline, candidate, scale=candidate / baseline)
    equal = at_equal_samples(losses, samples)
    assert "grows with the batch" in equal.problem and equal.curves == {"baseline": [], "candidate": []}


def test_unknown_samples_and_missing_losses_are_said() -> None:
    losses = {"baseline": [[1.0, 2.0]], "candidate": [[1.0, 2.0]]}
    assert "not known" in at_equal_samples(losses, {"baseline": [[4, 0]], "candidate": [[4, 4]]}).problem
    assert "not known" in at_equal_samples(losses, {"baseline": [[4]], "candidate": [[4, 4]]}).problem
    nothing: dict[str, list[list[float]]] = {"baseline": [], "candidate": []}
    assert "no losses" in at_equal_samples(nothing, {"baseline": [], "candidate": []}).problem


def test_a_ratio_of_windows_in_samples() -> None:
    windows = [
        Window(*w) for i in range(4) for w in (("baseline", 2 * i, 10, 80, 0.2), ("candidate", 2 * i + 1, 5, 160, 0.4))
    ]
    told = per_sample(windows)
    assert told is not None and [w.steady_s for w in told[:2]] == pytest.approx([0.2 / 8, 0.4 / 32])
    found = ratio_interval(told, 0.005, 0.0025)
    assert found is not None and found.ratio == pytest.approx(0.03 / 0.015)
    assert ratio_interval(windows).ratio == pytest.approx(0.5)  # type: ignore[union-attr]  # steps would mislead


def test_a_window_that_does_not_know_its_samples() -> None:
    known = Window("baseline", 0, 10, 80, 0.2)
    assert per_sample([known, Window("candidate", 1, 5, 0, 0.4)]) is None
    assert per_sample([known, Window("candidate", 1, 0, 0, 0.0, "too few steps")]) is not None
