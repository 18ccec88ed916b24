"""Builder of synthetic timelines, and a clock that a test moves by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hotlap.records.code_shape import CodeShape
from hotlap.records.machine import Machine
from hotlap.records.rows import PHASES, SCHEMA, Event, Frame, Header, Hits, Load, Note, Setting, Site, Stack, Step, Tick
from hotlap.records.timeline import Timeline

__all__ = ["FakeClock", "TimelineBuilder", "cpu_machine"]

_BEGAN_UNIX_S = 4e9
"""Later than any file that a test writes: none was edited after the run began."""

UserLine = tuple[str, int, str, str]
"""A frame: file, line, function, source text. A file below ``site-packages`` or ``lib/python`` is not the user's."""


class FakeClock:
    """Nanoseconds that move only when told to; callable like ``time.monotonic_ns``."""

    def __init__(self, now: int = 1_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> int:
        """Move on; returns the new time in nanoseconds."""
        self.now += round(seconds * 1e9)
        return self.now


def cpu_machine(cores: int = 2, flags: Sequence[str] = ("avx2", "avx512f"), **more: Any) -> Machine:
    """A CPU machine of 8 GiB without fast bf16, unless flags say otherwise."""
    memory = 8 * 2**30
    return Machine("Linux", "Synthetic CPU", cores, memory, memory // 2, list(flags), "3.11.9", "2.13.0", **more)


@dataclass
class _Process:
    timeline: Timeline
    frames: dict[tuple[str, int, str], int] = field(default_factory=dict)
    stacks: dict[tuple[int, ...], int] = field(default_factory=dict)


def _header(role: str, pid: int, ppid: int, device: str, worker: int | None = None) -> Header:
    return Header(
        schema=SCHEMA, hotlap="0.1.0", role=role, pid=pid, ppid=ppid, rank=0, world=1, argv=["train.py"], cwd="/home/u",
        python="3.11.9", torch="2.13.0", device=device, t=0, unix_s=_BEGAN_UNIX_S, worker=worker,
    )  # fmt: skip


class TimelineBuilder:
    """Builds a :class:`Timeline` step by step; every method returns the builder.

    >>> timeline = TimelineBuilder().steps(100, data_wait=0.02, forward=0.01, backward=0.01).build()
    """

    def __init__(self, device: str = "cpu", batch: int = 32, start_s: float = 1.0) -> None:
        self._main = _Process(Timeline(_header("train", 100, 1, device)))
        self._batch = batch
        self.clock = FakeClock(round(start_s * 1e9))
        self._index = 0
        self._workers: list[_Process] = []

    @property
    def step_index(self) -> int:
        """Index of the next step."""
        return self._index

    def steps(
        self, n: int, *, rows_of: int = 1, micro: int = 1, lo: float = 0.0, **phases: float | None
    ) -> TimelineBuilder:
        """``n`` steps of the given seconds per phase (None: not measured), ``rows_of`` steps per row.

        ``lo`` > 0 adds an epoch start of that many seconds to the first of them (part of its data wait).
        """
        unknown = set(phases) - set(PHASES)
        if unknown:
            raise ValueError(f"Unknown phases: {', '.join(sorted(unknown))}.")
        left = n
        while left > 0:
            count = min(rows_of, left)
            first = left == n
            values: list[int | None] = []
            for phase in PHASES:
                seconds = phases.get(phase, 0.0)
                extra = lo if first and phase == "data_wait" else 0.0
                values.append(None if seconds is None else round((seconds * count + extra) * 1e9))
            wall = sum(v for v in values if v is not None)
            start = self.clock.now
            self.clock.now += wall
            started = round(lo * 1e9) if first else 0
            self._main.timeline.step.append(
                Step(self._index, count, start, wall, values, self._batch * count, micro * count, started,
                     int(first and lo > 0), wall // count, [1.0])
            )  # fmt: skip
            self._index += count
            left -= count
        return self

    def _frame(self, process: _Process, line: UserLine) -> int:
        file, number, function, text = line
        user = "site-packages" not in file and "lib/python" not in file
        key = (file, number, function)
        if key not in process.frames:
            process.frames[key] = len(process.frames) + 1
            process.timeline.frame[process.frames[key]] = Frame(process.frames[key], file, number, function, user)
        if user and text:
            self._main.timeline.source[f"{file}:{number}"] = text
        return process.frames[key]

    def frame(self, line: UserLine) -> int:
        """Number of a frame of the training process."""
        return self._frame(self._main, line)

    def _stack(self, process: _Process, lines: Sequence[UserLine]) -> int:
        ids = tuple(self._frame(process, line) for line in lines)
        if ids not in process.stacks:
            process.stacks[ids] = len(process.stacks) + 1
            process.timeline.stack[process.stacks[ids]] = Stack(process.stacks[ids], list(ids))
        return process.stacks[ids]

    def stack(self, phase: str, count: int, *lines: UserLine) -> TimelineBuilder:
        """``count`` samples of a stack (outermost first), written down now."""
        number = self._stack(self._main, lines)
        hit = [number, PHASES.index(phase), count]
        self._main.timeline.hits.append(Hits(self.clock.now, 10_000_000, [hit]))
        return self

    def loop(self, file: str, line: int, header: str) -> TimelineBuilder:
        """The innermost loop around a user's line."""
        self._main.timeline.loops[f"{file}:{line}"] = header
        return self

    def shape(self, kind: str, line: UserLine, *lines: int, detail: str = "") -> TimelineBuilder:
        """A shape of source at a user's line, with the lines that it covers."""
        file, number, function, text = line
        self._main.timeline.shapes.append(CodeShape(kind, file, number, function, frozenset(lines), text, detail))
        return self

    def event(
        self, kind: str, seconds: float, *lines: UserLine, at: int | None = None, **numbers: float
    ) -> TimelineBuilder:
        """An event; validation, checkpoint and logging also take their time as a phase of the last step's row."""
        stack = self._stack(self._main, lines) if lines else None
        wall = round(seconds * 1e9)
        index = self._index - 1 if at is None else at
        self._main.timeline.event.append(Event(kind, self.clock.now, wall, index, stack, dict(numbers)))
        if kind in ("validation", "checkpoint", "logging") and self._main.timeline.step:
            row = self._main.timeline.step[-1]
            p = list(row.p)
            p[PHASES.index(kind)] = (p[PHASES.index(kind)] or 0) + wall
            self._main.timeline.step[-1] = Step(
                row.i, row.n, row.t, row.w + wall, p, row.s, row.m, row.lo, row.lo_n, row.mx + wall, row.l
            )
            self.clock.now += wall
        return self

    def setting(self, name: str, line: UserLine | None = None, **value: Any) -> TimelineBuilder:
        """A setting row."""
        self._main.timeline.setting.append(Setting(name, value, self.frame(line) if line else None))
        return self

    def loader(self, line: UserLine | None = None, **value: Any) -> TimelineBuilder:
        """A training loader without workers, unless told otherwise."""
        usual = {
            "id": 1, "num_workers": 0, "batch_size": self._batch, "persistent_workers": False, "prefetch_factor": None,
            "pin_memory": False, "dataset": "Clips", "dataset_len": 3200, "iterable": False,
            "batches_per_epoch": 3200 // max(1, self._batch), "training": True,
        }  # fmt: skip
        return self.setting("loader", line, **{**usual, **value})

    def loads(
        self, batches: int, each_s: float, *, decode: float = 0.0, collate: float = 0.0, cpu: float | None = None,
        read_bytes: int | None = 0,
    ) -> TimelineBuilder:  # fmt: skip
        """Loading in the training process: seconds per batch; ``cpu`` defaults to all of it."""
        self._main.timeline.load.append(self._load(batches, each_s, decode, collate, cpu, read_bytes))
        return self

    def _load(
        self, batches: int, each_s: float, decode: float, collate: float, cpu: float | None, read: int | None
    ) -> Load:
        def total(seconds: float) -> int:
            return round(seconds * batches * 1e9)

        used = total(each_s if cpu is None else cpu)
        samples = batches * self._batch
        return Load(self.clock.now, total(each_s), batches, samples, total(decode), total(collate), used, read)

    def worker(
        self, batches: int, each_s: float, *, decode: float = 0.0, collate: float = 0.0, cpu: float | None = None,
        read_bytes: int | None = 0, stacks: Sequence[tuple[int, Sequence[UserLine]]] = (),
    ) -> TimelineBuilder:  # fmt: skip
        """One more loader worker with its load row and stacks (``[(count, lines)]``)."""
        number = len(self._workers)
        process = _Process(Timeline(_header("worker", 200 + number, 100, "cpu", number)))
        process.timeline.load.append(self._load(batches, each_s, decode, collate, cpu, read_bytes))
        hits = [[self._stack(process, lines), PHASES.index("data_wait"), count] for count, lines in stacks]
        process.timeline.hits.append(Hits(self.clock.now, 20_000_000, hits))
        self._workers.append(process)
        return self

    def ticks(
        self, n: int, *, rss: int = 2**30, rss_growth: int = 0, cpu_per_s: float = 1.0, **more: Any
    ) -> TimelineBuilder:
        """``n`` telemetry rows, a second apart, the last one now."""
        for i in range(n):
            t = self.clock.now - (n - 1 - i) * 1_000_000_000
            cpu = round(i * cpu_per_s * 1e9)
            self._main.timeline.tick.append(Tick(t, rss + i * rss_growth, cpu, **more))
        return self

    def site(self, kind: str, op: str, line: UserLine, n: int, seconds: float) -> TimelineBuilder:
        """Timed calls from one line."""
        row = Site(self.clock.now, kind, op, self.frame(line), n, round(seconds * 1e9))
        self._main.timeline.site.append(row)
        return self

    def note(self, what: str, why: str) -> TimelineBuilder:
        """A probe's note."""
        self._main.timeline.note.append(Note(what, why))
        return self

    def build(self) -> Timeline:
        """The timeline, workers attached."""
        self._main.timeline.workers = [process.timeline for process in self._workers]
        return self._main.timeline
