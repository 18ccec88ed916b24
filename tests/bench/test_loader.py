"""The loader's benchmark: who goes on after the first round, and whom ours is set beside."""

from __future__ import annotations

import pytest
from loader import LIMIT, ROOF, go_on, summary

RATES = {
    LIMIT: 100.0, ROOF: 500.0, "hotlap.pack inline 1": 50.0, "hotlap.pack background 1": 60.0,
    "hotlap.pack background 2": 80.0, "hotlap.pack channels-last 2": 90.0, "hotlap.pack pure torch inline 1": 40.0,
    "hotlap.pack JPEG 2": 20.0, "FFCV 2": 30.0, "FFCV 1": 20.0, "HF 0": 10.0, "HF 2": 5.0, "FFCV JPEG 2": 16.0,
}  # fmt: skip


def turns() -> dict[str, list[dict[str, float]]]:
    return {name: [{"samples_per_s": rate, "cpu_s_per_1000": 1 / rate, "anonymous_bytes": 1.0}] * 2
            for name, rate in RATES.items()}  # fmt: skip


def test_the_quickest_of_each_side_and_tier_go_on() -> None:
    assert set(RATES) - go_on(turns()) == {"hotlap.pack inline 1", "HF 2"}


def test_our_quickest_is_set_beside_the_quickest_rival_of_its_tier() -> None:
    found = summary(turns())
    assert {tier: (row["ours"], row["best_rival"]) for tier, row in found.items()} == {
        "decoded": ("hotlap.pack channels-last 2", "FFCV 2"),
        "pure torch": ("hotlap.pack pure torch inline 1", "FFCV 2"),
        "encoded": ("hotlap.pack JPEG 2", "FFCV JPEG 2"),
    }
    assert found["decoded"]["samples_per_s_ratio"]["median"] == pytest.approx(3.0)
    assert found["decoded"][f"of {LIMIT}"]["median"] == pytest.approx(0.9)
    assert found["encoded"]["cpu_s_per_1000_ratio"]["median"] == pytest.approx(0.8)
