"""Keep or put back."""

from __future__ import annotations

import pytest

from hotlap.plan.choose import choose
from hotlap.records.trials import Interval, Trial


@pytest.mark.parametrize(
    ("ratio", "low", "high", "kept", "word"),
    [
        (1.5, 1.4, 1.6, True, "1.50x [1.40, 1.60]"),
        (1.02, 1.005, 1.04, True, "1.02x [1.00, 1.04]"),
        (1.008, 1.002, 1.014, False, "not certain"),
        (1.2, 0.98, 1.4, False, "not certain"),
        (1.0, 0.99, 1.005, False, "no gain"),
        (0.8, 0.7, 0.9, False, "slower"),
        (1.011, 1.0, 1.2, False, "not certain"),
    ],
)
def test_by_interval(ratio: float, low: float, high: float, kept: bool, word: str) -> None:
    choice = choose(Trial("autocast", {}, "measured", interval=Interval(ratio, low, high)))
    assert choice.kept is kept and word in choice.reason


@pytest.mark.parametrize("status", ["failed", "no-effect", "refused"])
def test_what_was_not_measured_is_not_kept(status: str) -> None:
    trial = Trial("x", {}, status, reason="because", interval=Interval(2, 2, 2))  # type: ignore[arg-type]
    choice = choose(trial)
    assert not choice.kept and "because" in choice.reason
    assert not choose(Trial("x", {}, "measured")).kept
