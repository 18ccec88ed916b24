"""Quality verdicts: equal bits, non-inferiority over seeds, time to the same loss."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hotlap.proof.noninferior import judge, loss_scale
from hotlap.proof.same import first_difference
from hotlap.proof.time_to_quality import time_to_loss
from hotlap.records.codec import dumps


def curves(seeds: int, end: float = 0.5, start: float = 3.0, noise: float = 0.002, seed: int = 0) -> list[list[float]]:
    g = np.random.default_rng(seed)
    steps = np.arange(60)
    return [list(end + (start - end) * np.exp(-steps / 8) + noise * g.standard_normal(60)) for _ in range(seeds)]


def scaled(arm: list[list[float]], factor: float, jitter: float = 1e-4) -> list[list[float]]:
    g = np.random.default_rng(9)
    return [[v * factor * (1 + jitter * g.standard_normal()) for v in curve] for curve in arm]


def test_first_difference_sees_the_last_bit_and_the_sign_of_zero() -> None:
    assert first_difference([1.0, 0.3], [1.0, 0.3]) is None
    assert first_difference([1.0, 0.3], [1.0, math.nextafter(0.3, 1)]) == 1
    assert first_difference([0.0], [-0.0]) == 0
    assert first_difference([math.nan, 1.0], [math.nan, 2.0]) == 1
    assert first_difference([1.0], [1.0, 2.0]) is None


def test_same_quality_is_proved() -> None:
    found = judge(curves(3), scaled(curves(3), 1.0))
    assert (found.verdict, found.seeds, found.steps, found.margin_frac) == ("proved", 3, 60, 0.02)
    assert found.upper_frac is not None and found.delta_frac is not None and found.delta_frac < found.upper_frac < 0.02


def test_ten_per_cent_worse_is_refuted_and_better_is_proved() -> None:
    assert judge(curves(3), scaled(curves(3), 1.1)).verdict == "refuted"
    better = judge(curves(3), scaled(curves(3), 0.9))
    assert better.verdict == "proved" and better.delta_frac is not None and better.delta_frac < -0.09


def test_noise_wider_than_the_margin_is_not_proved() -> None:
    base = curves(3, noise=0.0)
    candidate = [scaled([c], f)[0] for c, f in zip(base, (0.95, 1.0, 1.06), strict=True)]
    assert judge(base, candidate).verdict == "not proved"


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_broken_candidate_is_refuted_and_can_be_written(bad: float) -> None:
    candidate = curves(2)
    candidate[1][40] = bad
    found = judge(curves(2), candidate)
    assert found.verdict == "refuted" and "step 40 in run 2 of 2" in found.summary
    assert "step 40 of seed 8" in judge(curves(2), candidate, names=[7, 8]).summary
    assert '"raw"' in dumps(found)


def test_a_broken_baseline_proves_nothing() -> None:
    base = curves(2)
    base[0][3] = math.nan
    assert judge(base, curves(2)).verdict == "not proved"


def test_one_seed_never_proves_but_can_refute() -> None:
    assert judge(curves(1), curves(1)).verdict == "not proved"
    assert judge(curves(1), scaled(curves(1), 1.5)).verdict == "refuted"


def test_a_baseline_with_wide_spread_widens_the_margin() -> None:
    base = [curves(1, end=e, seed=i)[0] for i, e in enumerate((0.45, 0.5, 0.55, 0.5))]
    found = judge(base, scaled(base[:2], 1.0))
    assert found.margin_frac is not None and 0.05 < found.margin_frac < 0.12
    assert found.verdict == "proved" and found.seeds == 2
    assert judge(base, scaled(base[:2], 1.03, 0.0), margin_frac=0.01).verdict == "refuted"


def test_unpaired_seeds_do_not_count_their_order() -> None:
    base = [curves(1, end=e)[0] for e in (0.48, 0.5, 0.52)]
    swapped = [base[2], base[0], base[1]]
    assert judge(base, swapped, margin_frac=0.08, paired=False).upper_frac == pytest.approx(
        judge(base, base, margin_frac=0.08, paired=False).upper_frac
    )


def test_a_loss_near_zero_is_judged_by_what_training_brought() -> None:
    base, candidate = curves(3, end=1e-4, noise=0.0), curves(3, end=2e-4, noise=0.0)
    assert loss_scale(base, 60) > 0.2  # a doubled 1e-4 is nothing beside the fall from 3.0
    assert judge(base, candidate).verdict == "proved"
    negative = [[v - 1.0 for v in curve] for curve in curves(3)]
    worse = [[v + 0.2 for v in curve] for curve in negative]
    assert judge(negative, worse).verdict == "refuted"


def test_too_few_steps_or_no_loss_at_all() -> None:
    assert judge([[1.0] * 5] * 3, [[1.0] * 5] * 3).verdict == "not proved"
    assert judge([], []).verdict == "not proved"
    assert judge([[0.0] * 30] * 3, [[0.0] * 30] * 3).verdict == "not proved"


def test_time_to_loss_is_the_ratio_for_the_same_curve() -> None:
    base = curves(3, noise=0.0)
    assert time_to_loss(base, base, 4.0) == pytest.approx(4.0)
    slower = [[0.5 + 2.5 * math.exp(-i / 12) for i in range(60)]] * 3
    factor = time_to_loss(base, slower, 4.0)
    assert factor is None or factor < 4.0
    faster = [[0.5 + 2.5 * math.exp(-i / 4) for i in range(60)]] * 3
    assert (time_to_loss(base, faster, 4.0) or 0.0) > 6.0


def test_time_to_loss_is_unknown_for_a_loss_that_does_not_fall() -> None:
    flat = [[1.0] * 60]
    assert time_to_loss(flat, flat, 2.0) is None
    assert time_to_loss(curves(1), [[3.0] * 60], 2.0) is None


@pytest.mark.parametrize("paired", [True, False])
def test_a_candidate_at_the_margin_is_proved_as_rarely_as_the_level_says(paired: bool) -> None:
    g = np.random.default_rng(1)
    proved = 0
    for _ in range(300):
        luck = 1 + 0.01 * g.standard_normal((2, 3))
        base = [list(np.asarray(c) * f) for c, f in zip(curves(3, noise=0.0), luck[0], strict=True)]
        again = luck[0] + 0.004 * g.standard_normal(3) if paired else luck[1]
        candidate = [list(1.02 * np.asarray(c) * f) for c, f in zip(curves(3, noise=0.0), again, strict=True)]
        proved += judge(base, candidate, 0.02, paired).verdict == "proved"
    assert proved <= 0.09 * 300  # 5 %, and three deviations of 300 draws
