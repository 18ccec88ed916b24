"""The timeline, digested once, as the causes see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

from hotlap.diagnose.epochs import steps_per_epoch
from hotlap.diagnose.loading import Loading, measure_loading
from hotlap.diagnose.phases import mean_s, phase_names
from hotlap.diagnose.policy import Policy
from hotlap.diagnose.script import loader_facts, model_facts, setting
from hotlap.diagnose.shares import Times, measure
from hotlap.diagnose.stacks import Sampled, StackBook, collect, user_caller, user_where
from hotlap.diagnose.steady import Steady, find_steady, set_aside
from hotlap.diagnose.surroundings import Around
from hotlap.records.findings import Drift, Finding, LoaderFacts, Where
from hotlap.records.library_files import MODULE
from hotlap.records.machine import Machine
from hotlap.records.rows import Event, Frame, Setting
from hotlap.records.timeline import Timeline

__all__ = ["View", "look"]


@dataclass(frozen=True)
class View:
    """Everything a cause may ask. Times are seconds per step, shares 0..1."""

    timeline: Timeline
    machine: Machine
    policy: Policy
    phases: list[str]
    steady: Steady
    times: Times
    stacks: StackBook
    """The training thread's samples of the steady part."""
    loader: LoaderFacts | None
    loading: Loading | None
    steps_per_epoch: float | None
    """By what the loader says; None: nothing."""
    start_ns: int
    around: Sequence[Around] = ()
    """What the machine did beside the training, where Hotlap looked."""
    known_drift: Drift | None = None
    """The drift that this is looked at for; whoever asks for one is not to find another."""

    @property
    def workers(self) -> int:
        """Workers of the training loader."""
        return self.loader.num_workers if self.loader else 0

    @property
    def on_device(self) -> bool:
        """Whether training runs on an accelerator."""
        return self.timeline.device != "cpu"

    @property
    def compute_s(self) -> float:
        """Forward and backward, without waiting for other ranks; on a device as it took them, where that was measured.

        There the host's own clock saw how long the launches took.
        """
        taken = self.device_s
        if taken:
            return max(0.0, taken.get("forward", 0.0) + taken.get("backward", 0.0) - self.rank_wait_s)
        return self.seconds("forward") + self.seconds("backward") - self.rank_wait_s

    @cached_property
    def device_s(self) -> dict[str, float]:
        """Seconds per step that the device took for each phase, of the steps that were bracketed by events."""
        first = self.steady.rows[0].i if self.steady.rows else 0
        steps = [event for event in self.events("device_step") if event.d and event.i >= first]
        phases = {phase for event in steps for phase in event.d}
        return {phase: median(event.d.get(phase, 0.0) for event in steps) / 1e9 for phase in sorted(phases)}

    @property
    def device_idle_s(self) -> float | None:
        """Seconds per step in which the device is idle at most; None: nobody knows.

        Where the host holds it up between two phases, it is idle outside their brackets: no such wait costs more.
        """
        return max(0.0, self.times.step_s - sum(self.device_s.values())) if self.device_s else None

    @cached_property
    def rank_wait_s(self) -> float:
        """Part of backward that waits for later ranks: what it takes longer than on the rank that is there last."""
        first = self.steady.rows[0].i if self.steady.rows else 0
        others = [
            mean_s([row for row in rank.step if row.i >= first], "backward", phase_names(rank.header.phases))
            for rank in self.timeline.ranks
        ]
        known = [seconds for seconds in others if seconds is not None]
        return max(0.0, self.seconds("backward") - min(known)) if known else 0.0

    @property
    def compute_bound(self) -> float:
        """0..1: how far compute, not dispatch, takes a step's forward and backward. 1 on a device."""
        return self.bound_by_compute(self.compute_s, model_facts(self.timeline).get("modules") or 0)

    def bound_by_compute(self, seconds: float, modules: float, part: float = 1.0) -> float:
        """The same of ``seconds`` in so many modules. ``part``: what of forward and backward that is."""
        if self.on_device:
            return 1.0
        low, high = self.policy.small_module_s * part, self.policy.full_module_s * part
        each_s = seconds / max(modules, self.policy.few_modules)
        return min(1.0, max(0.0, (each_s - low) / (high - low)))

    @property
    def torch_threads(self) -> int:
        """Threads torch computes with; the machine's cores when unknown."""
        found = self.setting("threads").get("torch")
        return int(found) if isinstance(found, int) and found > 0 else max(1, self.machine.cores)

    @cached_property
    def span_s(self) -> float:
        """Seconds from the first steady step to the last row's end."""
        if not self.steady.rows:
            return 0.0
        last = self.steady.rows[-1]
        return max(0.0, (last.t + last.w - self.start_ns) / 1e9)

    def seconds(self, phase: str) -> float:
        """Seconds per step of a phase; 0.0 when it was not measured."""
        return self.times.phase_s.get(phase) or 0.0

    def share(self, seconds: float) -> float:
        """Share of the step, 0..1."""
        return min(1.0, max(0.0, seconds / self.times.step_s))

    def setting(self, name: str) -> dict[str, Any]:
        """The last setting of that name; empty when there is none."""
        row = setting(self.timeline, name)
        return row.value if row else {}

    def setting_rows(self, name: str) -> list[Setting]:
        """All settings of that name."""
        return [row for row in self.timeline.setting if row.name == name]

    def events(self, kind: str) -> list[Event]:
        """Events after the first step."""
        return [event for event in self.timeline.event if event.kind == kind and event.i > 0]

    def forward_where(self) -> list[Where]:
        """The user's lines that call the model from outside any module: where autocast would go."""

        def call_site(sample: Sampled) -> Frame | None:
            names = [frame.file.replace("\\", "/") for frame in sample.frames]
            inside = (
                i
                for i, (frame, name) in enumerate(zip(sample.frames, names, strict=True))
                if frame.func == "forward" or name.endswith(MODULE)
            )
            depth = next(inside, 0)
            return next((frame for frame in reversed(sample.frames[:depth]) if frame.user), None)

        return self.stacks.phase("forward").lines(self.policy.max_where, call_site)

    def loader_where(self) -> list[Where]:
        """Where the training loader was constructed; empty when there is none, or nobody knows."""
        return [self.loader.where] if self.loader and self.loader.where else []

    def setting_where(self, row: Setting) -> list[Where]:
        """Where a setting was made."""
        where = user_where(self.timeline, frame_id=row.frame)
        return [where] if where else []

    def option_where(self, cause: str) -> list[Where]:
        """The lines whose source says that the script asked for what the cause is about: an option, a type, a size."""
        return [Where(s.file, s.line, s.function, s.text) for s in self.timeline.shapes if s.kind == cause]

    def event_where(self, kind: str) -> list[Where]:
        """The user's lines that began events of a kind, most seconds first; the caller of the first stands second.

        By stack samples when no event tells.
        """
        cost: dict[tuple[str, int, str], int] = {}
        found: dict[tuple[str, int, str], Where] = {}
        callers: dict[tuple[str, int, str], Where | None] = {}
        for event in self.events(kind):
            where = user_where(self.timeline, stack_id=event.stack)
            if where is not None:
                key = (where.file, where.line, where.function)
                found[key] = where
                cost[key] = cost.get(key, 0) + max(0, event.w)
                callers.setdefault(key, user_caller(self.timeline, event.stack))
        total = max(1, sum(cost.values()))
        ranked = sorted(cost.items(), key=lambda pair: (-pair[1], pair[0]))[: self.policy.max_where]
        places = [Where(*key, text=found[key].text, share=ns / total) for key, ns in ranked]
        caller = callers[ranked[0][0]] if ranked else None
        if caller is not None:
            places.insert(1, caller)
        return places or self.stacks.phase(kind).lines(self.policy.max_where)

    def finding(self, cause: str, seconds: float, advice: str, where: list[Where], **more: Any) -> Finding | None:
        """A finding of that many seconds per step, or None below the policy's share."""
        share = self.share(seconds)
        if share < self.policy.min_share:
            return None
        seconds = min(seconds, self.times.step_s)
        return Finding(cause, share, seconds, confirmed=False, where=where, advice=advice, **more)

    def stack_evidence(self, book: StackBook) -> dict[str, Any]:
        """``{"stacks": [...]}``, or nothing when no stack was taken."""
        stacks = book.evidence(self.policy.max_stacks)
        return {"stacks": stacks} if stacks else {}


def look(timeline: Timeline, machine: Machine, policy: Policy, around: Sequence[Around] = ()) -> View:
    """Digest a timeline. Raises nothing on odd ones: what was not measured is None or empty."""
    phases = phase_names(timeline.header.phases)
    rows = sorted(timeline.step, key=lambda row: row.i)
    steady = set_aside(find_steady(rows, phases, policy), phases)
    start_ns = steady.rows[0].t if steady.rows else 0
    loader = loader_facts(timeline)
    per_epoch = steps_per_epoch(timeline, loader, steady)
    times = measure(rows, steady, timeline.event, phases, per_epoch)
    workers = loader.num_workers if loader else 0
    return View(
        timeline=timeline,
        machine=machine,
        policy=policy,
        phases=phases,
        steady=steady,
        times=times,
        stacks=collect(timeline, start_ns),
        loader=loader,
        loading=measure_loading(timeline, times, start_ns, workers, policy),
        steps_per_epoch=per_epoch,
        start_ns=start_ns,
        around=around,
    )
