"""Timelines of arms that took turns: on their own clock, without their freezes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotlap.diagnose.loading import Loading, measure_loading
from hotlap.diagnose.phases import phase_names
from hotlap.diagnose.policy import Policy
from hotlap.diagnose.shares import measure
from hotlap.diagnose.steady import Steady
from hotlap.lap.awake import awake
from hotlap.records.rows import PHASES, Event, Hits, Load, Site, Step, Tick
from hotlap.records.timeline import Timeline
from hotlap.testing.timelines import TimelineBuilder

S = 1_000_000_000
TURNS = [(0, 10 * S), (30 * S, 40 * S)]


def step(t: float, w: float) -> Step:
    return Step(round(10 * t), 1, round(t * S), round(w * S), [0] * len(PHASES), 8, 1)


def load(t: int, w: float, cpu: float = 0.5, **more: int) -> Load:
    return Load(
        t * S, round(w * S), 8, 64, more.get("decode", 0), more.get("collate", 0), round(cpu * S), None, sq=w * w
    )


def built(**rows: list[object]) -> Timeline:
    timeline = TimelineBuilder().build()
    for kind, given in rows.items():
        setattr(timeline, kind, given)
    return timeline


def loading(timeline: Timeline) -> Loading:
    phases, steady = phase_names(timeline.header.phases), Steady(timeline.step, 0)
    found = measure_loading(timeline, measure(timeline.step, steady, [], phases, None), 0, 0, Policy())
    assert found is not None
    return found


def test_an_arm_that_was_never_frozen_is_left_as_it_is() -> None:
    timeline = built(load=[load(5, 1.0)], tick=[Tick(5, 1, 1)])
    assert awake(timeline, [(0, None)]) is timeline and timeline.load == [load(5, 1.0)]


def test_what_a_freeze_fell_into_is_left_out_and_the_clock_stands_still() -> None:
    rows = [step(1, 1), step(9.5, 21), step(31, 1)]
    events = [Event("validation", 9 * S, 22 * S, 1), Event("checkpoint", 32 * S, S, 3)]
    timeline = awake(built(step=rows, event=events, tick=[Tick(t * S, 1, 0) for t in (9, 31, 32)]), TURNS)
    assert [row.t for row in timeline.step] == [S, 11 * S] and [row.t for row in timeline.event] == [12 * S]
    assert [row.t for row in timeline.tick] == [9 * S, 11 * S, 12 * S]


@pytest.mark.parametrize("frozen", [True, False])
def test_loading_is_the_same_before_a_freeze_and_after_it(frozen: bool) -> None:
    steps = [step(t / 10, 0.1) for t in range(1, 100)]
    before = [load(t, 0.6) for t in range(1, 10)]
    after = [load(31, 20.6 if frozen else 0.6), *(load(t, 0.6) for t in range(32, 40))]
    usual, found = (
        loading(built(step=steps, load=before)),
        loading(awake(built(step=steps, load=before + after), TURNS)),
    )
    assert found.load_s == pytest.approx(usual.load_s) and found.wait_frac == pytest.approx(usual.wait_frac)


def test_workers_have_the_clock_of_the_training_process() -> None:
    late = built(load=[load(31, 0.4), load(32, 0.4)])
    late.header = replace(late.header, t=30 * S + S // 2)
    workers = awake(replace(built(), workers=[built(load=[load(9, 0.6), load(31, 20.6)]), late]), TURNS).workers
    assert [(row.t, row.w) for row in workers[0].load] == [(9 * S, 0.6 * S), (11 * S, 0.6 * S)]
    assert [(row.t, row.w) for row in workers[1].load] == [(11 * S, 0.4 * S), (12 * S, 0.4 * S)]


def test_short_freezes_have_their_share_of_what_is_counted_over_several() -> None:
    turns = [(t * S, (t + 1) * S) for t in range(0, 40, 2)]
    rows = [Site(t * S, "sync", "item", 1, 8, 4 * S) for t in range(9, 40, 8)]
    found = awake(built(site=rows), turns).site
    assert {row.n for row in found} == {8} and sum(row.w for row in found) == pytest.approx(8 * S, rel=0.15)


def test_the_sample_that_came_late_loses_what_it_was_late_by() -> None:
    late = Hits(31 * S, 20_000_000, [[1, 2, 30], [2, 3, 1000], [3, 3, 5]])
    usual = Hits(9 * S, 20_000_000, [[1, 2, 40], [3, 3, 8]])
    counts = [[n for _, _, n in row.h] for row in awake(built(hits=[usual, late]), TURNS).hits]
    assert counts == [[40, 8], [30, 1, 5]]
