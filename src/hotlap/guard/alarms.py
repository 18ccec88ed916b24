"""When to warn: once per drift, again only for another or a worse one, and never for a few slow seconds.

Pure: given the timeline so far, what the machine did, and how far the run is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hotlap.diagnose.causes import growing_validation
from hotlap.diagnose.phases import core_ns, phase_names
from hotlap.diagnose.policy import DEFAULT, Policy
from hotlap.diagnose.slower import Named, name_cause, sides
from hotlap.diagnose.steady import find_steady
from hotlap.diagnose.surroundings import Around
from hotlap.diagnose.validation_growth import find_validation_growth
from hotlap.diagnose.view import look
from hotlap.guard.change import begin_ns, fallen, last_rows, lasting_drift
from hotlap.records.findings import Drift
from hotlap.records.guard import Alarm
from hotlap.records.machine import Machine
from hotlap.records.rows import Step
from hotlap.records.timeline import Timeline

__all__ = ["GUARD_POLICY", "Alarms", "News"]

WINDOW_S = 240.0
"""A change is looked for in this much of the run; it shows once an eighth of the window lies behind it."""
WINDOW_SIDES = 6
"""Slow steps: the window holds at least so many times the steps that are wanted on either side of a change."""
WHOLE_EVERY = 1.05
"""The run as a whole is looked at when it has grown by this factor: a slow growth shows in no short window."""
RECENT_S = 12.0
"""What counts as now, when it is asked whether a drift is over: longer where fewer steps than are wanted fit in."""
WORSE = 1.15
"""While a drift goes on, another is told when steps take this much longer than when the first was told ..."""
WORSE_GROWTH = 1.5
"""... and after a growth, which goes on by itself, when they take this much longer."""
QUIET_S = 300.0
"""After a drift is over, another of the same cause is not told for so long; twice as long each time. An epoch sorted by
length drifts once per epoch, and a neighbour who comes and goes is told once. One that stays is told when the quiet is
over."""
MOST_QUIET_S = 3600.0
OPTIMIZER_FACTS = ("class", "parameters", "tensors")
"""What an optimizer is known by, of its setting row."""

GUARD_POLICY = replace(DEFAULT, growth_frac=DEFAULT.drift_growth_frac)


@dataclass
class News:
    """What a look brought."""

    alarms: list[Alarm] = field(default_factory=list)
    over: list[Alarm] = field(default_factory=list)


@dataclass
class _Told:
    """How often a cause was told, and until when (of the run's clock, ns) it is not told again."""

    times: int = 0
    quiet_until: int = 0


@dataclass
class _Process:
    """What is known of one process that trains, also while another one is followed."""

    current: Alarm | None = None
    start_ns: int = 0
    """Nothing before this is looked at: what is slow since then is the new normal, and was told."""
    whole_s: float = 0.0
    validations: int = 0
    """Validations seen when their growth was last looked at; -1: it was told."""
    optimizers: set[str] = field(default_factory=set)
    """What the optimizers that have stepped are: kinds, not instances."""
    one_work: bool = True
    """No other kind of optimizer began after the first look."""

    def begins_anew(self, timeline: Timeline) -> bool:
        """Whether an optimizer of another kind has begun to step since the last look: another model, or other parts of
        it, with a step time of its own. One that is made anew for each epoch is no other."""
        seen = {
            str(sorted((k, row.value.get(k)) for k in OPTIMIZER_FACTS))
            for row in timeline.setting
            if row.name == "optimizer"
        }
        new, first = seen - self.optimizers, not self.optimizers
        self.optimizers |= seen
        if first or not new:
            return False
        last = timeline.step[-1]
        self.current, self.start_ns, self.whole_s, self.one_work = None, last.t + last.w, 0.0, False
        return True


class Alarms:
    """The drifts of one run."""

    def __init__(
        self, machine: Machine, policy: Policy = GUARD_POLICY, prepare: Callable[[Timeline], object] | None = None
    ) -> None:
        self.alarms: list[Alarm] = []
        self._machine = machine
        self._policy = policy
        self._prepare = prepare
        """Adds what a diagnosis wants and a look does not: the text of lines, the other ranks."""
        self._processes: dict[int, _Process] = {}
        self._of = _Process()
        self._told: dict[str, _Told] = {}

    @property
    def current(self) -> Alarm | None:
        """The drift that goes on, in the process that is followed."""
        return self._of.current

    def follow(self, process: int) -> None:
        """This process is looked at from now on: what was told of it before is told no more."""
        self._of = self._processes.setdefault(process, _Process())

    def look(self, timeline: Timeline, around: list[Around]) -> News:
        """Look at what is new. ``timeline`` may be read further while this is not running."""
        news = News()
        rows = timeline.step
        if len(rows) < self._policy.min_blocks:
            return news
        if self._of.begins_anew(timeline):
            return news
        phases = phase_names(timeline.header.phases)
        self._see_the_end(rows, phases, news)
        self._tell_late(rows, news)
        found = self._drift(rows, phases)
        if found is not None:
            drift, start_ns = found
            if self._is_news(drift):
                named = self._name(timeline, drift, start_ns, around)
                self._tell(rows, drift, named, news)
        self._look_at_validations(timeline, news)
        return news

    def _drift(self, rows: list[Step], phases: list[str]) -> tuple[Drift, int] | None:
        """A drift in the last minutes, or in the run as a whole, and where the window begins that shows it."""
        end = rows[-1].t + rows[-1].w
        least = WINDOW_SIDES * self._policy.drift_least_steps
        begins = [max(self._of.start_ns, rows[last_rows(rows, WINDOW_S, least)].t)]
        run_s = (end - max(self._of.start_ns, rows[0].t)) / 1e9
        if run_s > WINDOW_S and run_s > WHOLE_EVERY * self._of.whole_s:
            self._of.whole_s = run_s
            begins.append(self._of.start_ns)
        for start_ns in begins:
            window = rows[bisect_left(rows, start_ns, key=lambda row: row.t) :]
            steady = find_steady(window, phases, self._policy).rows if window else []
            drift = lasting_drift(steady, phases, self._policy)
            if drift is not None:
                return drift, steady[0].t
        return None

    def _is_news(self, drift: Drift) -> bool:
        now = self.current
        return now is None or drift.after_s >= (WORSE_GROWTH if now.growing else WORSE) * now.after_s

    def _name(self, timeline: Timeline, drift: Drift, start_ns: int, around: list[Around]) -> Named:
        if self._prepare is not None:
            self._prepare(timeline)
        both = sides(timeline, drift, start_ns, self._machine, around, self._policy)
        return name_cause(replace(both, one_work=self._of.one_work), drift)

    def _tell(self, rows: list[Step], drift: Drift, named: Named, news: News) -> None:
        alarm, end = _alarm(rows, drift, named), rows[-1].t + rows[-1].w
        # a growth goes on: what comes is set against what was. After a change the new level is the normal one.
        self._of.start_ns = self._of.start_ns if drift.growing else begin_ns(rows, drift)
        self._of.whole_s = 0.0
        self._of.current = alarm
        told = self._told.setdefault(named.cause, _Told())
        if end < told.quiet_until:
            return
        told.times += 1
        self.alarms.append(alarm)
        news.alarms.append(alarm)

    def _tell_late(self, rows: list[Step], news: News) -> None:
        """A drift that began while its cause was quiet, and still goes on."""
        now, end = self.current, rows[-1].t + rows[-1].w
        if now is None or now in self.alarms:
            return
        told = self._told.setdefault(now.cause, _Told())
        if end >= told.quiet_until:
            told.times += 1
            self.alarms.append(now)
            news.alarms.append(now)

    def _see_the_end(self, rows: list[Step], phases: list[str], news: News) -> None:
        """Steps are again nearer to what they were before the drift than to what they became."""
        now = self.current
        if now is None:
            return
        end = rows[-1].t + rows[-1].w
        recent = rows[last_rows(rows, RECENT_S, self._policy.drift_least_steps) :]
        steps = sum(row.n for row in recent)
        if recent[0].i <= now.found_step or steps < self._policy.drift_least_steps:
            return
        cores = core_ns(recent, phases)
        if sum(cores) / steps / 1e9 > (now.before_s + now.after_s) / 2:
            return
        back = recent[fallen(recent, cores, now)]
        self._of.current, self._of.start_ns, self._of.whole_s = None, back.t, 0.0
        told = self._told.setdefault(now.cause, _Told())
        told.quiet_until = end + int(min(MOST_QUIET_S, QUIET_S * 2 ** max(0, told.times - 1)) * 1e9)
        if now in self.alarms:
            over = replace(now, over_step=back.i)
            self.alarms[self.alarms.index(now)] = over
            news.over.append(over)

    def _look_at_validations(self, timeline: Timeline, news: News) -> None:
        count = sum(1 for event in timeline.event if event.kind == "validation")
        if self._of.validations < 0 or count == self._of.validations:
            return
        self._of.validations = count
        grown = find_validation_growth(timeline.event, self._policy)
        if grown is None:
            return
        if self._prepare is not None:
            self._prepare(timeline)
        found = growing_validation.find(look(timeline, self._machine, self._policy))
        if found is None:  # too little of the run goes there
            return
        self._of.validations = -1
        rows = timeline.step
        drift = Drift(grown.first_step, grown.first_s, grown.last_s, "validation", growing=True)
        alarm = _alarm(rows, drift, Named(found.cause, found.where, found.advice, dict(found.evidence)))
        self.alarms.append(alarm)
        news.alarms.append(alarm)


def _alarm(rows: list[Step], drift: Drift, named: Named) -> Alarm:
    end = rows[-1].t + rows[-1].w
    begun = begin_ns(rows, drift)
    return Alarm(
        at_step=drift.at_step, found_step=rows[-1].i + rows[-1].n - 1, at_s=(begun - rows[0].t) / 1e9,
        found_s=(end - begun) / 1e9, before_s=drift.before_s, after_s=drift.after_s, phase=drift.phase,
        growing=drift.growing, cause=named.cause, where=named.where, advice=named.advice, evidence=named.evidence,
    )  # fmt: skip
