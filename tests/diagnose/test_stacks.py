"""What sampled stacks come to."""

from __future__ import annotations

from dataclasses import replace

from hotlap.diagnose.stacks import collect, sampling_period_ns
from hotlap.testing.timelines import TimelineBuilder

EARLY = ("/home/me/train.py", 3, "forward", "early()")
LATE = ("/home/me/train.py", 4, "forward", "late()")


def test_a_sample_counts_for_the_time_that_it_stands_for() -> None:
    timeline = TimelineBuilder().stack("forward", 50, EARLY).stack("forward", 10, LATE).build()
    timeline.hits[1] = replace(timeline.hits[1], every_ns=5 * timeline.hits[0].every_ns)
    assert sampling_period_ns(timeline) == timeline.hits[0].every_ns
    assert {s.frames[0].line: s.count for s in collect(timeline, 0).samples} == {3: 50, 4: 50}
