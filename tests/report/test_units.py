"""Rounding: the one place for it."""

from __future__ import annotations

import math

import pytest

from hotlap.report import units, words

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.212, "212 ms"),
        (0, "0 s"),
        (3e-7, "300 ns"),
        (4.2e-5, "42.0 µs"),
        (0.9996, "1.00 s"),
        (1.234, "1.23 s"),
        (59.99, "60.0 s"),
        (754, "12 min 34 s"),
        (7199.7, "2 h 0 min"),
        (200_000, "2 d 7 h"),
        (-0.0215, "-21.5 ms"),
        (None, units.NONE),
        (NAN, units.NONE),
        (INF, units.NONE),
        (0.0009996, "1.00 ms"),
    ],
)
def test_seconds(value: float | None, text: str) -> None:
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.04, "3.04x"),
        (1, "1.00x"),
        (12.34, "12.3x"),
        (9.996, "10.0x"),
        (123.4, "123x"),
        (0.5, "0.50x"),
        (0, "0.00x"),
        (1e12, "1.0e+12x"),
        (None, units.NONE),
        (INF, units.NONE),
    ],
)
def test_ratio(value: float | None, text: str) -> None:
    assert units.ratio(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.11, "11 %"),
        (0.0034, "0.3 %"),
        (0.035, "3.5 %"),
        (0.05, "5 %"),
        (0, "0 %"),
        (0.0002, "< 0.1 %"),
        (0.999, "100 %"),
        (7.5, "750 %"),
        (None, units.NONE),
    ],
)
def test_share(value: float | None, text: str) -> None:
    assert units.share(value) == text


def test_per_s_bytes_count_and_signed() -> None:
    assert [units.per_s(v) for v in (1904.3, 21.18, 0.2117, 99.96, 0, None)] == [
        "1,904",
        "21.2",
        "0.212",
        "100",
        "0",
        units.NONE,
    ]
    assert [units.bytes_(v) for v in (4509715661, 512, 1536, 0, None)] == [
        "4.2 GiB",
        "512 B",
        "1.5 KiB",
        "0 B",
        units.NONE,
    ]
    assert [units.factor(v) for v in (6.8, 120, 10.0, 3.25)] == ["6.8", "120", "10", "3.25"]
    assert units.count(1234567) == "1,234,567"
    assert [units.signed_share(v) for v in (0.004, -0.021, 0.00001, 0)] == ["+0.4 %", "-2.1 %", "0 %", "0 %"]


def test_an_interval_has_the_digits_that_its_width_deserves() -> None:
    assert units.ratio_interval(6.93, 6.71, 7.18) == "6.9x [6.7, 7.2]"
    assert units.ratio_interval(3.04, 2.97, 3.11) == "3.04x [2.97, 3.11]"
    assert units.interval(0.98, 1.05) == "[0.98, 1.05]"
    assert units.interval(1.0, 1.0) == "[1.00, 1.00]"
    assert units.ratio_interval(2.0, None, None) == "2.00x"
    assert units.interval(NAN, 1.0) == units.NONE
    assert units.ratio_interval(24.3, 12.2, 38.1) == "24x [12, 38]"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ((2.0, 0.6, 2.6), "2.0x [0.6, 2.6]"),
        ((2.2, 1.4, 3.4), "2.2x [1.4, 3.4]"),
        ((1.3, 1.04, 1.6), "1.30x [1.04, 1.60]"),
        ((0.7, 0.4, 0.996), "0.700x [0.400, 0.996]"),
        ((1.3, 1.00001, 1.6), "1.3x [1.0, 1.6]"),  # four decimals do not tell it either
    ],
)
def test_a_bound_stays_on_its_side_of_1(found: tuple[float, float, float], text: str) -> None:
    assert units.ratio_interval(*found) == text


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("load_s_per_step", 0.18, ("load per step", "180 ms")),
        ("data_wait_s", 0.168, ("data wait", "168 ms")),
        ("read_bytes_per_sample", 2048, ("read per sample", "2.0 KiB")),
        ("hit_frac", 0.5, ("hit", "50 %")),
        ("samples_per_s", 212.3, ("samples per s", "212")),
        ("workers", 0, ("workers", "0")),
        ("cached", True, ("cached", "True")),
        ("why", "no disk", ("why", "no disk")),
    ],
)
def test_evidence_takes_its_unit_from_its_name(key: str, value: object, text: tuple[str, str]) -> None:
    assert words.quantity(key, value) == text
