"""The interval of the speedup: exact on clean windows, honest under noise and peeking."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from hotlap.proof.speedup import MIN_PAIRS, UNKNOWN_LAUNCH_FRAC, half_width, pair_log_ratios, ratio_interval
from hotlap.records.trials import Window

SECOND = 10**9


def windows(baseline: list[float], candidate: list[float], dropped: tuple[int, ...] = ()) -> list[Window]:
    turns = [
        (arm, s)
        for pair in zip(baseline, candidate, strict=True)
        for arm, s in zip(("baseline", "candidate"), pair, strict=True)
    ]
    return [
        Window(arm, i * SECOND, 20, 640, s, "neighbour load" if i in dropped else None)
        for i, (arm, s) in enumerate(turns)
    ]


def test_clean_windows_give_the_ratio() -> None:
    found = ratio_interval(windows([0.2] * 6, [0.1] * 6), launch_frac=0.0)
    assert found is not None
    assert found.ratio == pytest.approx(2.0)
    assert 1.99 < found.low < 2.0 < found.high < 2.01


def test_periodic_work_dilutes_the_ratio() -> None:
    found = ratio_interval(windows([0.2] * 6, [0.1] * 6), overhead_baseline_s=0.1, overhead_candidate_s=0.1)
    assert found is not None
    assert found.ratio == pytest.approx(1.5)


def test_too_few_pairs_give_nothing() -> None:
    assert ratio_interval(windows([0.2] * 2, [0.1] * 2)) is None
    assert ratio_interval([]) is None
    assert ratio_interval(windows([0.2] * 4, [0.1] * 4, dropped=(0, 4))) is None


def test_a_dropped_window_does_not_pair_with_a_distant_one() -> None:
    # A B | A - | A B: the second A waits in vain and the third, nearer one takes its place
    ratios = pair_log_ratios(windows([0.2, 9.0, 0.2], [0.1, 0.1, 0.1], dropped=(3,)), 0.0, 0.0)
    assert ratios == pytest.approx([math.log(2), math.log(2)])


def test_order_of_turns_does_not_matter() -> None:
    turns = ["baseline", "candidate", "candidate", "baseline"] * 2
    mixed = [Window(arm, i, 10, 0, 0.3 if arm == "baseline" else 0.1) for i, arm in enumerate(turns)]
    assert pair_log_ratios(mixed, 0.0, 0.0) == pytest.approx([math.log(3)] * 4)


def test_each_window_is_in_one_pair_at_most() -> None:
    arms, step_s = ["baseline", "candidate", "candidate", "baseline"], [0.2, 0.1, 0.3, 0.9]
    mixed = [Window(arm, i, 10, 0, s) for i, (arm, s) in enumerate(zip(arms, step_s, strict=True))]
    assert pair_log_ratios(mixed, 0.0, 0.0) == pytest.approx([math.log(2), math.log(3)])


def test_one_wild_pair_among_many_does_not_move_the_ratio() -> None:
    g = np.random.default_rng(3)
    base, cand = 0.2 * np.exp(0.01 * g.standard_normal(20)), 0.1 * np.exp(0.01 * g.standard_normal(20))
    cand[7] *= 15.0
    found = ratio_interval(windows(list(base), list(cand)))
    assert found is not None and found.low > 1.8 and abs(found.ratio - 2.0) < 0.05


def test_identical_windows_are_never_faster() -> None:
    found = ratio_interval(windows([0.1] * 8, [0.1] * 8), launch_frac=0.0)
    assert found is not None and found.low < 1.0 < found.high


def test_level_must_be_a_probability() -> None:
    with pytest.raises(ValueError, match=r"95"):
        ratio_interval([], level=95)


def test_width_shrinks_with_pairs_and_grows_with_level() -> None:
    widths = [half_width(n, 1.0, 0.98) for n in (3, 4, 6, 12, 48)]
    assert widths == sorted(widths, reverse=True)
    assert half_width(8, 1.0, 0.95) < half_width(8, 1.0, 0.98) < half_width(8, 1.0, 0.99)
    assert half_width(3, 1.0, 0.999) == math.inf


def step_noise(g: np.random.Generator, n: int, phi: float, heavy: bool) -> np.ndarray:
    """AR(1) log step times of neighbouring windows, deviation 3 % of a fresh innovation."""
    fresh = 0.03 * (g.standard_t(3, n) if heavy else g.standard_normal(n))
    out = np.empty(n)
    last = fresh[0] / math.sqrt(1 - phi * phi)
    for i in range(n):
        last = phi * last + fresh[i]
        out[i] = last
    return out


def compare(g: np.random.Generator, pairs: int, phi: float, heavy: bool, truth: float) -> tuple[bool, bool, bool]:
    """One comparison with a look after every window: (ever faster, ever slower, truth missed at the last look)."""
    noise = step_noise(g, 2 * pairs, phi, heavy)
    all_windows = windows(list(0.1 * truth * np.exp(noise[0::2])), list(0.1 * np.exp(noise[1::2])))
    faster = slower = missed = False
    for n in range(2 * MIN_PAIRS, 2 * pairs + 1, 2):
        found = ratio_interval(all_windows[:n], launch_frac=0.0)
        if found is None:
            continue
        faster, slower = faster or found.low > truth, slower or found.high < truth
        missed = not found.low <= truth <= found.high
    return faster, slower, missed


@pytest.mark.parametrize(("phi", "heavy"), [(0.0, False), (0.6, False), (0.95, False), (0.3, True)])
def test_equals_are_not_called_faster_however_often_one_looks(phi: float, heavy: bool) -> None:
    g = np.random.default_rng(11)
    n = 1500
    outcomes = [compare(g, 16, phi, heavy, 1.0) for _ in range(n)]
    # 1 % is the promise; the noise of 1500 draws allows three deviations more
    assert sum(o[0] for o in outcomes) <= 0.0177 * n
    assert sum(o[1] for o in outcomes) <= 0.0177 * n


def test_the_interval_covers_the_truth() -> None:
    g = np.random.default_rng(5)
    missed = [compare(g, 12, 0.6, False, 1.4)[2] for _ in range(400)]
    assert np.mean(missed) <= 0.05


def launches(g: np.random.Generator, n: int, truth: float, two_modes: bool) -> list[Window]:
    """``n`` pairs of launches, each launch slower or faster for its whole life: by 8 %, or in one of two modes."""
    out: list[Window] = []
    for launch in range(n):
        luck = 0.28 * g.integers(0, 2, 2) if two_modes else 0.08 * g.standard_normal(2)
        noise = step_noise(g, 16, 0.6, False)
        pair = windows(list(0.1 * truth * np.exp(luck[0] + noise[0::2])), list(0.1 * np.exp(luck[1] + noise[1::2])))
        out += [dataclasses.replace(w, launch=launch, t=w.t + launch * 1000 * SECOND) for w in pair]
    return out


def test_launches_that_differ_widen_the_interval_as_much_as_they_should() -> None:
    g = np.random.default_rng(2)
    found = [ratio_interval(launches(g, 4, 1.0, False)) for _ in range(1500)]
    assert all(i is not None and i.launches == 4 for i in found)
    claims = sum(i is not None and not i.low <= 1.0 <= i.high for i in found)
    assert claims <= 0.03 * len(found)  # 2 % is the promise
    one = [ratio_interval(launches(g, 1, 1.0, False)) for _ in range(300)]
    assert sum(i is not None and not i.low <= 1.0 <= i.high for i in one) > 0.2 * len(
        one
    )  # what one launch would claim


def test_launches_of_two_modes_are_rarely_taken_for_a_gain() -> None:
    g = np.random.default_rng(4)
    found = [ratio_interval(launches(g, 4, 1.0, True)) for _ in range(1500)]
    assert sum(i is not None and i.low > 1.0 for i in found) <= 0.02 * len(found)


def test_a_large_gain_is_seen_over_launches_that_differ() -> None:
    g = np.random.default_rng(6)
    found = [ratio_interval(launches(g, 4, 3.0, False)) for _ in range(200)]
    assert sum(i is not None and i.low > 1.0 for i in found) >= 0.99 * len(found)


def test_few_launches_cost_an_allowance() -> None:
    g = np.random.default_rng(8)
    one = ratio_interval(launches(g, 1, 1.2, False), launch_frac=UNKNOWN_LAUNCH_FRAC)
    assert one is not None and one.launches == 1 and one.high / one.low > 1.25**2


def test_a_launch_with_too_few_windows_does_not_count() -> None:
    g = np.random.default_rng(9)
    three = launches(g, 3, 1.0, False)
    stump = [dataclasses.replace(w, launch=7, steady_s=9.0) for w in windows([0.1] * 2, [0.1] * 2)]
    assert ratio_interval([*three, *stump]) == ratio_interval(three)


def test_a_real_gain_is_found_within_eight_pairs() -> None:
    g = np.random.default_rng(7)
    found = 0
    for _ in range(100):
        noise = step_noise(g, 16, 0.6, False)
        interval = ratio_interval(windows(list(0.12 * np.exp(noise[0::2])), list(0.1 * np.exp(noise[1::2]))))
        found += interval is not None and interval.low > 1.0
    assert found >= 95
