"""A lap without a plan says what would decide it."""

from __future__ import annotations

import pytest

from hotlap.lap.no_plan import why_no_plan
from hotlap.records.plan import Move
from hotlap.records.proof import Proof, Quality
from hotlap.records.trials import Interval

MOVES = [Move("trim-padding", {}, "distribution", 0), Move("allocator", {}, "bits", 0)]


def why(interval: Interval | None, verdict: str = "proved", moves: list[Move] = MOVES) -> str:
    quality = Quality(verdict, "non-inferior", "The loss is worse.")  # type: ignore[arg-type]
    return why_no_plan(Proof(interval, quality, claimed=False), moves, budget_s=600.0, proof_s=250.0)


def test_what_to_type_where_launches_are_too_few() -> None:
    told = why(Interval(1.1446, 0.9751, 1.3435, 0.9925, 5))
    # t(6, 0.99825) * 0.0751 / sqrt(7) = 0.131 < ln 1.1446 = 0.135; with six pairs it is 0.154. 7 * 50 s / 0.39 = 15 min
    assert told.endswith(
        "about 7 pairs of launches tell: try --only trim-padding --only allocator --seeds 7 --budget 15m."
    )


def test_a_knob_is_no_lever_to_name() -> None:
    knob = Move("knob:batch", {}, "goal", 0)
    assert "tell: try --seeds 7" in why(Interval(1.1446, 0.9751, 1.3435, 0.9925, 5), moves=[MOVES[0], knob])


def test_a_gain_that_no_lap_would_tell() -> None:
    assert "1.01x is too little" in why(Interval(1.01, 0.80, 1.28, 0.9925, 5))
    assert why(Interval(0.99, 0.80, 1.23, 0.9925, 5)).endswith("from the unmodified script.")


@pytest.mark.parametrize("interval", [None, Interval(1.1, 0.8, 1.5, 0.985, 2)])
def test_too_few_launches_to_tell_how_they_differ(interval: Interval | None) -> None:
    assert f"{interval.launches if interval else 0} of the 3 pairs" in why(
        interval
    ) and "try --only trim-padding --only allocator --budget 20m." in why(interval)


def test_quality_comes_first() -> None:
    assert why(Interval(1.5, 1.2, 1.9, 0.985, 4), "refuted") == "No plan was written: The loss is worse."
