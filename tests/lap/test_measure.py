"""How long a comparison takes: as asked, or as long as slow steps need."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.lap.measure import LONG_SHARE, WINDOWS, Question, _seconds
from hotlap.records.rows import Step
from hotlap.testing.timelines import TimelineBuilder


def seconds(step_s: float, left_s: float = 200.0, without: str | None = None, workers: int = 0) -> float:
    timeline = TimelineBuilder().steps(20, forward=step_s).loader(num_workers=workers, prefetch_factor=2).build()
    trainer = SimpleNamespace(steps=cast(list[Step], timeline.step), settings=timeline.setting)
    arm, session = SimpleNamespace(poll=lambda: trainer), SimpleNamespace(left_s=lambda share: left_s)
    return _seconds(cast(Any, session), cast(Any, arm), Question("roof", 14.0, without=without))


def test_steps_of_a_second_get_the_pairs_that_a_verdict_needs() -> None:
    assert seconds(0.02) == 14.0
    per_pair = (WINDOWS.window_steps + WINDOWS.drop_steps + 2) + (WINDOWS.window_steps + 2)
    assert seconds(1.0) == pytest.approx(WINDOWS.min_pairs * per_pair, rel=0.05)
    assert seconds(1.0, workers=4) > seconds(1.0), "after a thaw they drop what had been fetched ahead"


def test_never_more_than_the_budget_has_nor_for_an_ablation() -> None:
    assert seconds(10.0, left_s=100.0) == pytest.approx(LONG_SHARE * 100.0)
    assert seconds(1.0, left_s=5.0) == 14.0
    assert seconds(1.0, without="data") == 14.0 and seconds(1.0, without="everything") > 14.0
