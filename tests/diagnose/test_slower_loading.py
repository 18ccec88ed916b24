"""Who is said to have stopped loading: a worker that is silent, not one whose rows are rare."""

from __future__ import annotations

import pytest

from hotlap.diagnose.policy import DEFAULT
from hotlap.diagnose.slower_loading import why_loading
from hotlap.diagnose.span import span
from hotlap.diagnose.view import look
from hotlap.records.rows import Load
from hotlap.records.timeline import Timeline
from hotlap.testing.timelines import TimelineBuilder, cpu_machine

S = 10**9
WORKERS = 4


@pytest.mark.parametrize(
    ("pace_s", "lost", "named"), [(1.0, 1, True), (10.0, 1, True), (30.0, 0, False), (1.0, 0, False)]
)
def test_a_lost_worker_is_one_that_is_silent(pace_s: float, lost: int, named: bool) -> None:
    builder = TimelineBuilder(start_s=0.0).loader(num_workers=WORKERS, persistent_workers=True)
    builder.steps(1000, data_wait=0.05, forward=0.1, backward=0.05)
    split = builder.clock.now
    builder.steps(60, data_wait=0.2, forward=0.1, backward=0.05)
    end = builder.clock.now
    timeline = builder.build()
    header = timeline.header

    def worker(number: int) -> Timeline:
        """Rows at the pace, those of the workers at moments of their own."""
        first, until = round(pace_s * S * (number + 1) / WORKERS), split if number < lost else end
        return Timeline(header, load=[Load(t, S, 1, 32, 0, 0, S) for t in range(first, until, round(pace_s * S))])

    timeline.workers = [worker(n) for n in range(WORKERS)]
    whole, early, late = (
        look(span(timeline, begin, stop), cpu_machine(), DEFAULT)
        for begin, stop in ((0, 2 * end), (0, split), (split, 2 * end))
    )
    found = why_loading(whole, early, late)
    assert (found is not None and found[0] == "worker-lost") is named
