"""Periodic work (validation, checkpoints, starts of an epoch): what it adds to a step, at the script's own cadence."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hotlap.records.rows import Event, Step
from hotlap.trial.cadence import Cadence, cadences, rates_per_sample
from hotlap.trial.windows import openings, steady_ns

__all__ = ["ARMS", "KINDS", "PeriodicStats", "gather"]

ARMS = ("baseline", "candidate")
KINDS = {"validation": "validation", "checkpoint": "checkpoint", "loader_start": "epoch_start"}
"""Event kinds of a timeline and what a trial calls them."""


@dataclass(frozen=True)
class PeriodicStats:
    """Both arms' periodic work: over one shared cadence, and, for arms that differ in it, each at its own."""

    seconds: dict[str, dict[str, float]]
    """Per arm and kind: mean seconds of one event."""
    count: dict[str, dict[str, int]]
    """Per arm and kind: events that the mean rests on."""
    per_step: dict[str, float]
    """Per kind: events per step."""
    notes: list[str] = field(default_factory=list)
    per_sample: dict[str, dict[str, float]] = field(default_factory=dict)
    """Per arm and kind: events per sample, at the arm's own cadence; empty where samples are unknown."""
    own: dict[str, Cadence] = field(default_factory=dict)
    """Per kind: how often it came in each arm, for arms whose scripts may differ."""
    longest_s: dict[str, float] = field(default_factory=dict)
    """Per kind that no arm did without a freeze in the middle of it: seconds of one event, the freeze included."""

    def sample_s(self, arm: str) -> float | None:
        """What periodic work adds to each sample of ``arm`` at its own cadence; None where samples are unknown."""
        if arm not in self.per_sample:
            return None
        return sum(rate * self.seconds[arm].get(kind, 0.0) for kind, rate in self.per_sample[arm].items())

    def part(self, arm: str, kind: str) -> float:
        """What one kind of periodic work adds to each step of ``arm``, in seconds; 0.0 for a kind that never came."""
        return self.per_step.get(kind, 0.0) * self.seconds[arm].get(kind, 0.0)

    def seconds_per_step(self, arm: str) -> float:
        """What periodic work adds to each step of ``arm``, in seconds."""
        return sum(self.part(arm, kind) for kind in self.per_step)

    @property
    def baseline_s(self) -> float:
        """Seconds per step that periodic work adds to the baseline."""
        return self.seconds_per_step("baseline")

    @property
    def candidate_s(self) -> float:
        """Seconds per step that periodic work adds to the candidate."""
        return self.seconds_per_step("candidate")

    def flat(self) -> dict[str, dict[str, float]]:
        """For :attr:`Trial.periodic`: ``{arm: {validation_s, validation_n, validation_per_step, ...}}``."""
        result: dict[str, dict[str, float]] = {}
        for arm in ARMS:
            row: dict[str, float] = {}
            for kind, seconds in self.seconds[arm].items():
                row[f"{kind}_s"] = seconds
                row[f"{kind}_n"] = float(self.count[arm].get(kind, 0))
                row[f"{kind}_per_step"] = self.per_step.get(kind, 0.0)
                if arm in self.per_sample:
                    row[f"{kind}_per_sample"] = self.per_sample[arm].get(kind, 0.0)
            for kind, cadence in self.own.items():
                row |= {f"{kind}_own": cadence.per_step[arm], f"{kind}_apart": cadence.apart}
                if kind in self.longest_s:
                    row[f"{kind}_at_most_s"] = self.longest_s[kind]
            result[arm] = row
        return result


def _durations(
    events: Sequence[Event], steps: Sequence[Step], live: Sequence[tuple[int, int | None]]
) -> dict[str, list[float]]:
    """Seconds per event, by kind. An event that a freeze fell into tells nothing; neither does the very first epoch."""
    found: dict[str, list[float]] = {}
    opening = _Opening(steps, live)
    for event in events:
        early = event.w if event.kind == "loader_start" else 0  # noticed at its end
        begin, end = event.t - early, event.t - early + event.w
        if event.kind not in KINDS or not _whole(begin, end, live) or (event.kind == "loader_start" and event.i == 0):
            continue
        more_s = opening.more_s(event) if event.kind == "loader_start" else 0.0
        if more_s is not None:
            found.setdefault(KINDS[event.kind], []).append(event.w / 1e9 + more_s)
    return found


def _whole(begin: int, end: int, live: Sequence[tuple[int, int | None]]) -> bool:
    return any(t <= begin and (frozen is None or end <= frozen) for t, frozen in live)


class _Opening:
    """What the steps that open an epoch take beyond the others, besides the start of the loader itself."""

    def __init__(self, steps: Sequence[Step], live: Sequence[tuple[int, int | None]]) -> None:
        self._live = live
        self._rows = openings(steps)
        self._ends = [row.t + row.w for row in self._rows]
        opening = {row.t for row in self._rows}
        others = [steady_ns(row) / row.n for row in steps if row.t not in opening]
        self._usual_ns = statistics.median(others) if opening else 0

    def more_s(self, event: Event) -> float | None:
        """Of the step that an epoch's start fell into; None: it is not over, or a freeze fell into it."""
        if not self._rows:
            return 0.0
        at = bisect_left(self._ends, event.t)
        if at == len(self._rows) or not _whole(self._rows[at].t, self._ends[at], self._live):
            return None
        if self._rows[at].t > event.t:
            return 0.0  # it fell into a row of several steps, which says nothing of one
        return (steady_ns(self._rows[at]) - self._usual_ns) / 1e9


def gather(
    events: Mapping[str, Sequence[Event]],
    steps: Mapping[str, Sequence[Step]],
    live: Mapping[str, Sequence[tuple[int, int | None]]],
    rates: Mapping[str, float] | None = None,
) -> PeriodicStats:
    """Statistics of both arms. ``rates``: events per step by kind, where the caller knows them from a longer run;

    else the baseline's own. An arm that never saw a kind gets the other one's mean, and a note says so.
    """
    durations = {arm: _durations(events[arm], steps[arm], live[arm]) for arm in ARMS}
    n_steps = sum(row.n for row in steps["baseline"])
    if rates is None:
        rates = {
            name: sum(1 for e in events["baseline"] if e.kind == kind and (e.i > 0 or kind != "loader_start")) / n_steps
            for kind, name in KINDS.items()
            if n_steps
        }
    seconds: dict[str, dict[str, float]] = {arm: {} for arm in ARMS}
    notes = []
    for kind, rate in rates.items():
        if rate <= 0 and kind not in durations["candidate"]:
            continue
        for arm, other in (ARMS, ARMS[::-1]):
            own, others = durations[arm].get(kind, []), durations[other].get(kind, [])
            if own:
                seconds[arm][kind] = statistics.fmean(own)
            elif others:
                seconds[arm][kind] = statistics.fmean(others)
                if rate > 0:
                    notes.append(
                        f"the {arm} saw no {kind.replace('_', ' ')} in its windows: taken as long as in the {other}"
                    )
            else:
                seconds[arm][kind] = 0.0
    count = {arm: {kind: len(values) for kind, values in durations[arm].items()} for arm in ARMS}
    per_sample = rates_per_sample(events, steps, KINDS)
    by_arm = cadences(events, steps, KINDS)
    longest_s = {
        name: max(e.w for arm in ARMS for e in events[arm] if e.kind == kind) / 1e9
        for kind, name in KINDS.items()
        if name in by_arm and not any(name in durations[arm] for arm in ARMS)
    }
    per_step = {kind: rate for kind, rate in rates.items() if rate > 0}
    return PeriodicStats(seconds, count, per_step, notes, per_sample, by_arm, longest_s)
