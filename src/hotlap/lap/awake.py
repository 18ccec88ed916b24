"""An arm's timeline on its own clock, without what its freezes did to it.

A step that a freeze fell into lasted as long as we made it last, and so did a fetch, a sync, or the line in which a
sample was due. Such steps and events are left out. Running counts are of many calls, of which a freeze fell into one
at most: it is taken out of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any

from hotlap.records.rows import Hits, Load, Site
from hotlap.records.timeline import Timeline
from hotlap.trial.awake import Thaws

__all__ = ["awake"]


@dataclass(frozen=True)
class _Span:
    """What a running count covers, in ns: the time awake, and the freezes in it, longest first."""

    awake: int
    freezes: Sequence[int]

    def without(self, wall: int) -> int:
        """What of the wall time of some calls in the span was no freeze's.

        One that is longer than the time awake is in there if it fits. Of shorter ones nobody can tell: they fell into
        the calls as often as any other moment did.
        """
        for freeze in self.freezes:
            if freeze > self.awake and wall >= freeze:
                wall -= freeze
        short = sum(freeze for freeze in self.freezes if freeze <= self.awake)
        return round(wall * self.awake / (self.awake + short)) if short else wall


class _Clock:
    """The arm's clock: it stands still while the arm does."""

    def __init__(self, thaws: Thaws, begun: int) -> None:
        self._gaps = [
            (frozen, thaw) for (_, frozen), (thaw, _) in pairwise(thaws) if frozen is not None and thaw > begun
        ]

    def __call__(self, t: int) -> int:
        return t - sum(min(t, thaw) - frozen for frozen, thaw in self._gaps if frozen < t)

    def whole(self, begin: int, end: int) -> bool:
        """Whether the arm was awake all the while."""
        return not any(frozen < end and begin < thaw for frozen, thaw in self._gaps)

    def spans(self, rows: Sequence[Any], since: int) -> Iterator[tuple[_Span, list[Any]]]:
        """Rows of running counts that were written at one time, and what they cover, the first of them ``since``."""
        for t, group in groupby(rows, key=lambda row: row.t):
            freezes = [thaw - frozen for frozen, thaw in self._gaps if since <= frozen < t]
            yield _Span(max(0, self(t) - self(since)), sorted(freezes, reverse=True)), list(group)
            since = t


def awake(timeline: Timeline, thaws: Thaws) -> Timeline:
    """The same timeline, its rows changed; as it is where the arm was never frozen before it went on."""
    if len(thaws) > 1:
        _set(timeline, _Clock(thaws, timeline.header.t))
    return timeline


def _set(timeline: Timeline, clock: _Clock) -> None:
    begun = timeline.header.t
    timeline.load = [_load(row, span) for span, rows in clock.spans(timeline.load, begun) for row in rows]
    timeline.site = [_site(row, span) for span, rows in clock.spans(timeline.site, begun) for row in rows]
    timeline.hits = [row for span, rows in clock.spans(timeline.hits, begun) for row in _hits(rows, span)]
    timeline.step = [row for row in timeline.step if clock.whole(row.t, row.t + row.w)]
    timeline.event = [row for row in timeline.event if clock.whole(row.t, row.t + row.w)]
    for kind in ("step", "event", "load", "site", "hits", "tick"):
        setattr(timeline, kind, [replace(row, t=clock(row.t)) for row in getattr(timeline, kind)])
    for other in (*timeline.workers, *timeline.ranks):
        _set(other, clock)


def _load(row: Load, span: _Span) -> Load:
    wall, decode, collate = (span.without(ns) for ns in (row.w, row.decode, row.collate))
    return row if wall == row.w else replace(row, w=wall, decode=decode, collate=collate, sq=None)


def _site(row: Site, span: _Span) -> Site:
    return replace(row, w=span.without(row.w))


def _hits(rows: list[Hits], span: _Span) -> list[Hits]:
    """Each freeze is in one sample, which came late: it counts for all the periods that it stood for."""
    rows = [replace(row, h=[list(hit) for hit in row.h]) for row in rows]
    for freeze in span.freezes:
        found = [(hit[2] * row.every_ns, row.every_ns, hit) for row in rows for hit in row.h]
        seen, every, hit = max(found, key=lambda entry: entry[0], default=(0, 1, [0, 0, 0]))
        if seen + 2 * every >= freeze:  # it was due a little after the freeze
            hit[2] = max(1, hit[2] - freeze // every)
    return rows
