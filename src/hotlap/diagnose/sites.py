"""Timed calls of the steady part, by kind and line: what they cost per step, and where they stand."""

from __future__ import annotations

from dataclasses import dataclass

from hotlap.diagnose.phases import measured_steps
from hotlap.diagnose.stacks import user_where
from hotlap.diagnose.view import View
from hotlap.records.findings import Where
from hotlap.records.rows import Site

__all__ = ["Calls", "calls", "collect_calls", "timed_steps"]


@dataclass(frozen=True)
class Calls:
    """Calls of one sort."""

    seconds: float
    """Per step."""
    per_step: float
    where: list[Where]
    """Most time first, each with its share."""

    @property
    def each_s(self) -> float:
        """Mean seconds of one call."""
        return self.seconds / self.per_step if self.per_step else 0.0


def calls(view: View, kind: str, *ops: str) -> list[Site]:
    """The rows of a kind (of these operations, where any are given) in the steady part."""
    rows = (site for site in view.timeline.site if site.kind == kind and site.t >= view.start_ns)
    return [site for site in rows if not ops or site.op in ops]


def timed_steps(view: View, kind: str) -> int:
    """Steady steps whose calls of a kind were timed: of frequent syncs and logs only those in some of the steps are."""
    rows = view.steady.rows
    return measured_steps(rows, kind, view.phases) if kind in view.phases else view.steady.steps


def collect_calls(view: View, sites: list[Site]) -> Calls:
    """Rows added up."""
    steps = max(1, min((timed_steps(view, site.kind) for site in sites), default=view.steady.steps))
    cost: dict[int, int] = {}
    for site in sites:
        cost[site.frame] = cost.get(site.frame, 0) + site.w
    total = max(1, sum(cost.values()))
    where = []
    for frame, ns in sorted(cost.items(), key=lambda pair: -pair[1])[: view.policy.max_where]:
        place = user_where(view.timeline, frame_id=frame)
        if place is not None:
            where.append(Where(place.file, place.line, place.function, place.text, ns / total))
    return Calls(sum(s.w for s in sites) / steps / 1e9, sum(s.n for s in sites) / steps, where)
