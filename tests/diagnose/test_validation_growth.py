"""Whether validations take longer one after the other."""

from __future__ import annotations

import random

import pytest

from hotlap.diagnose import trend, validation_growth
from hotlap.diagnose.policy import DEFAULT
from hotlap.diagnose.validation_growth import ValidationGrowth, find_validation_growth
from hotlap.records.rows import Event

EVERY = 50


def found(seconds: list[float]) -> ValidationGrowth | None:
    """In validations that took so long; the first, which is left out, comes before them."""
    events = [
        Event("validation", k * EVERY, int(1e9 * s), EVERY * (k + 1)) for k, s in enumerate([9.0, *seconds])
    ]  # fmt: skip
    return find_validation_growth(events, DEFAULT)


def test_each_that_takes_longer_than_the_one_before_is_a_growth() -> None:
    grown = found([1.0, 1.2, 1.4, 1.6, 1.8, 2.0])
    assert grown is not None and (grown.first_s, grown.last_s) == pytest.approx((1.0, 2.0))
    assert (grown.first_step, grown.last_step, grown.count) == (2 * EVERY, 7 * EVERY, 6)
    assert grown.extra_s_per_step == pytest.approx(1.0 / EVERY)


def test_one_change_is_no_growth() -> None:
    """The disk got slow, and with it the training."""
    draw = random.Random(3)
    changed = [1.0 + draw.random() / 20 for _ in range(5)] + [3.0 + draw.random() / 20 for _ in range(5)]
    assert trend.mann_kendall_z(changed) > DEFAULT.validation_trend_z, "the change alone looks like a trend"
    assert found(changed) is None


def test_what_begins_to_grow_in_the_middle_of_the_run_is_a_growth() -> None:
    grown = found([1.0] * 10 + [1.0 + 0.2 * k for k in range(10)])
    assert grown is not None and grown.last_s > 1.3 * grown.first_s


def test_those_that_hold_and_those_that_are_few_are_none() -> None:
    assert found([1.0, 1.02, 0.99, 1.01, 1.0, 1.03]) is None
    assert found([1.0, 1.5, 2.0, 2.5]) is None


def test_of_very_many_no_pair_is_made_of_each_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of days validates ten thousand times, and is looked at every five seconds."""
    lengths: list[int] = []

    def counted(values: list[float]) -> tuple[float, float]:
        lengths.append(len(values))
        return trend.theil_sen(values)

    monkeypatch.setattr(validation_growth, "theil_sen", counted)
    grown = found([1.0 + k / 10_000 for k in range(10_000)])
    assert grown is not None and grown.count == 10_000 and grown.last_s == pytest.approx(2.0, rel=0.03)
    assert lengths and max(lengths) <= DEFAULT.max_blocks


def test_what_begins_to_grow_late_in_a_long_run_is_found_after_eight() -> None:
    draw = random.Random(5)
    steady = [1.0 + draw.random() / 10 for _ in range(1000)]
    grows = [1.0 + 0.1 * (k + 1) + draw.random() / 10 for k in range(8)]
    grown = found([*steady, *grows])
    assert grown is not None and grown.count == 8 and grown.first_step == 1002 * EVERY
    assert grown.first_s == pytest.approx(1.15, abs=0.1) and grown.last_s == pytest.approx(1.85, abs=0.1)
    assert found([*steady, *grows[:2]]) is None, "too early to tell"
    slowly = [1.0 + 0.02 * (k + 1) + draw.random() / 10 for k in range(32)]
    grown = found([*steady, *slowly])
    assert grown is not None and grown.count == 32


def test_a_late_change_and_noise_are_no_late_growth() -> None:
    draw = random.Random(7)
    steady = [1.0 + draw.random() / 10 for _ in range(200)]
    for after in range(1, 30):
        assert found([*steady, *(3.0 + draw.random() / 10 for _ in range(after))]) is None, after
    for spread in (0.05, 0.2, 0.5):
        noisy = [draw.lognormvariate(0.0, spread) for _ in range(3000)]
        told = sum(found(noisy[:end]) is not None for end in range(100, 3000, 17))
        assert not told, spread
