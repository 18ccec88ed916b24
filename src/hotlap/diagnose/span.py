"""A part of a timeline, by time: what a diagnosis of only that part would have seen."""

from __future__ import annotations

from dataclasses import replace

from hotlap.records.timeline import Timeline

__all__ = ["span"]


def span(timeline: Timeline, start_ns: int, end_ns: int) -> Timeline:
    """Steps that begin in the span, and what was written down in it. Names, settings and source stay whole.

    Running counts (stacks, loads, calls) cover the time before they were written, so one row may reach over the start.
    """

    def inside(t: int) -> bool:
        return start_ns <= t <= end_ns

    return replace(
        timeline,
        step=[row for row in timeline.step if start_ns <= row.t < end_ns],
        hits=[row for row in timeline.hits if inside(row.t)],
        event=[row for row in timeline.event if inside(row.t)],
        load=[row for row in timeline.load if inside(row.t)],
        tick=[row for row in timeline.tick if inside(row.t)],
        site=[row for row in timeline.site if inside(row.t)],
        workers=[span(worker, start_ns, end_ns) for worker in timeline.workers],
        ranks=[span(rank, start_ns, end_ns) for rank in timeline.ranks],
    )
