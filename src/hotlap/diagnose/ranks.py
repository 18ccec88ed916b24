"""The ranks of one training side by side: what each does for itself, and how long it waits for the others.

Gradients meet in backward (on a device, at the next sync): a rank that is early waits there. Its own work is everything
else. Validation and checkpoints, which one rank alone may do, are left to their own causes.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from hotlap.diagnose.phases import PERIODIC, mean_s, phase_names
from hotlap.diagnose.view import View
from hotlap.records.timeline import Timeline

__all__ = ["Late", "RankTimes", "late_rank", "rank_times", "timelines"]

WAITING = ("backward", "sync")
"""Phases in which ranks meet."""


@dataclass(frozen=True)
class RankTimes:
    """Seconds per step of one rank."""

    rank: int
    phase_s: dict[str, float]

    @property
    def own_s(self) -> float:
        """Work of its own."""
        return sum(s for phase, s in self.phase_s.items() if phase not in WAITING and phase not in PERIODIC)

    @property
    def waiting_s(self) -> float:
        """Phases in which it meets the others."""
        return sum(self.phase_s.get(phase, 0.0) for phase in WAITING)


@dataclass(frozen=True)
class Late:
    """The rank that the others wait for."""

    rank: int
    phase: str
    """Where it loses most."""
    lost_s: float
    """Seconds per step that the others wait for it."""
    phase_lost_s: float


def timelines(view: View) -> list[Timeline]:
    """All ranks that were watched, by rank."""
    return sorted([view.timeline, *view.timeline.ranks], key=lambda t: t.header.rank)


def rank_times(view: View) -> list[RankTimes]:
    """Each rank over the steps that are steady in the first one."""
    first = view.steady.rows[0].i if view.steady.rows else 0
    found = []
    for timeline in timelines(view):
        phases = phase_names(timeline.header.phases)
        rows = [row for row in timeline.step if row.i >= first]
        if rows:
            seconds = {phase: mean_s(rows, phase, phases) for phase in phases}
            found.append(RankTimes(timeline.header.rank, {p: s for p, s in seconds.items() if s is not None}))
    return found


def late_rank(view: View) -> Late | None:
    """The rank with most work of its own beyond the others' median, if the others wait longer than it does."""
    ranks = rank_times(view)
    if len(ranks) < 2:
        return None
    late = max(ranks, key=lambda r: r.own_s)
    others = [r for r in ranks if r is not late]
    own = late.own_s - median(r.own_s for r in others)
    waited = median(r.waiting_s for r in others) - late.waiting_s
    lost = min(own, waited)
    if lost <= 0.0:
        return None
    own_phases = [p for p in late.phase_s if p not in WAITING and p not in PERIODIC]
    grown = {p: late.phase_s[p] - median(r.phase_s.get(p, 0.0) for r in others) for p in own_phases}
    phase = max(grown, key=lambda p: grown[p])
    return Late(late.rank, phase, lost, grown[phase])
