"""The builder makes timelines that the reader of files would accept."""

from __future__ import annotations

from itertools import pairwise

import pytest

from hotlap.records.codec import decode, encode
from hotlap.records.rows import PHASES, Step
from hotlap.testing.timelines import FakeClock, TimelineBuilder

LINE = ("train.py", 5, "main", "x = 1")


def test_rows_add_up_and_follow_each_other() -> None:
    rows = TimelineBuilder().steps(10, rows_of=4, forward=0.01, h2d=None).build().step
    assert [row.n for row in rows] == [4, 4, 2]
    assert [row.i for row in rows] == [0, 4, 8]
    assert all(row.w == sum(v for v in row.p if v is not None) for row in rows)
    assert all(b.t == a.t + a.w for a, b in pairwise(rows))
    assert rows[0].p[PHASES.index("h2d")] is None
    assert decode(Step, encode(rows[0])) == rows[0]


def test_frames_are_shared_and_the_library_is_not_the_users() -> None:
    library = ("/v/site-packages/PIL/Image.py", 9, "open", "")
    built = TimelineBuilder().steps(1, forward=0.1).stack("forward", 3, LINE, library).stack("gc", 1, LINE).build()
    assert [frame.user for frame in built.frame.values()] == [True, False]
    assert built.source == {"train.py:5": "x = 1"}


def test_an_event_takes_its_time_from_the_step() -> None:
    built = TimelineBuilder().steps(2, forward=0.1).event("checkpoint", 0.5, LINE).build()
    assert built.step[-1].w == pytest.approx(0.6e9)
    assert built.event[0].i == 1


def test_unknown_phase_is_refused() -> None:
    with pytest.raises(ValueError, match="forwards"):
        TimelineBuilder().steps(1, forwards=0.1)


def test_fake_clock_moves_only_when_told() -> None:
    clock = FakeClock(5)
    assert clock() == clock() == 5
    assert clock.advance(1e-9) == clock() == 6
