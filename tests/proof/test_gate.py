"""A gate for slowdowns, and how small a one it sees."""

from __future__ import annotations

import math

import pytest

from hotlap.proof.gate import gate, seen_from
from hotlap.records.trials import Interval


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.96, 1.02, "proved"), (0.80, 0.94, "refuted"), (0.94, 1.02, "not proved"), (0.95, 1.0, "proved")],
)
def test_the_whole_interval_decides(low: float, high: float, word: str) -> None:
    assert gate(Interval(math.sqrt(low * high), low, high), 0.05) == word


def test_a_wide_interval_sees_large_slowdowns_only() -> None:
    narrow, wide = (Interval(1.0, 1 / (1 + w), 1 + w) for w in (0.01, 0.25))
    assert seen_from(narrow, 0.05) == pytest.approx(1 - 0.95 / 1.01)
    assert seen_from(wide, 0.05) == pytest.approx(1 - 0.95 / 1.25)
    at = Interval(1 - seen_from(wide, 0.05), 0.5, 0.95)
    assert gate(at, 0.05) == "not proved" and gate(Interval(at.ratio, 0.5, 0.9499), 0.05) == "refuted"
