"""Reading a timeline: rows of one file, collected. A torn last line (kill -9) is dropped, nothing else is forgiven."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotlap.records.code_shape import CodeShape
from hotlap.records.codec import check_schema, decode, parse
from hotlap.records.errors import RecordError
from hotlap.records.fast_rows import fast_row
from hotlap.records.rows import (
    SCHEMA,
    End,
    Event,
    Frame,
    Header,
    Hits,
    Load,
    Mark,
    Note,
    Setting,
    Site,
    Stack,
    Step,
    Tick,
)

__all__ = ["ROW_KINDS", "Timeline", "attach_errors", "parse_row", "read_timeline", "trainer_of", "training_timeline"]

ROW_KINDS: dict[str, type[Any]] = {
    "header": Header,
    "step": Step,
    "frame": Frame,
    "stack": Stack,
    "hits": Hits,
    "event": Event,
    "load": Load,
    "tick": Tick,
    "site": Site,
    "setting": Setting,
    "mark": Mark,
    "note": Note,
    "end": End,
}


@dataclass
class Timeline:
    """What happened in one process, plus the load rows and stacks of its loader workers in :attr:`workers`."""

    header: Header
    step: list[Step] = field(default_factory=list)
    frame: dict[int, Frame] = field(default_factory=dict)
    stack: dict[int, Stack] = field(default_factory=dict)
    hits: list[Hits] = field(default_factory=list)
    event: list[Event] = field(default_factory=list)
    load: list[Load] = field(default_factory=list)
    tick: list[Tick] = field(default_factory=list)
    site: list[Site] = field(default_factory=list)
    setting: list[Setting] = field(default_factory=list)
    mark: list[Mark] = field(default_factory=list)
    note: list[Note] = field(default_factory=list)
    end: End | None = None
    workers: list[Timeline] = field(default_factory=list)
    ranks: list[Timeline] = field(default_factory=list)
    """The other ranks of the same training, by rank, each with its own workers."""
    beside: int = 0
    """Other processes of the same command that trained at the same time and are no ranks of this training."""
    source: dict[str, str] = field(default_factory=dict)
    """Text of the user's lines, by ``file:line``; filled by trial, so that diagnosis stays pure."""
    kept: dict[str, int] = field(default_factory=dict)
    """Line at which a variable that was seen to keep tensors is added to, by ``file:name``; filled by trial too."""
    loops: dict[str, str] = field(default_factory=dict)
    """Header of the innermost loop around a user's line (``for t in range(T):``), by ``file:line``."""
    shapes: list[CodeShape] = field(default_factory=list)
    """Places in the user's files whose syntax speaks for a cause; filled with ``source``."""

    @property
    def n_steps(self) -> int:
        """Steps recorded."""
        return sum(row.n for row in self.step)

    @property
    def device(self) -> str:
        """The device that trains, by name: the header's was written before the model was on any."""
        found = self.device_setting
        return self.header.device if found is None else str(found.get("name"))

    @property
    def device_setting(self) -> dict[str, Any] | None:
        """What was said of it: ``name``, ``type`` (cuda, mps, ...) and ``index``; None where a CPU trains."""
        return next((row.value for row in reversed(self.setting) if row.name == "device"), None)

    def add(self, row: Any) -> None:
        """Put one row where it belongs. RecordError for a second header: the file is two that were joined."""
        kind = type(row).__name__.lower()
        if kind == "header":
            raise RecordError(f"A second header stands in the timeline of process {self.header.pid}.")
        if kind in ("frame", "stack"):
            getattr(self, kind)[row.id] = row
        elif kind == "end":
            self.end = row
        else:
            getattr(self, kind).append(row)


def parse_row(line: bytes, path: Path, number: int) -> Any:
    """One line as its row. RecordError when it is none."""
    name = f"{path}:{number}"
    try:
        data = parse(line.decode())
    except ValueError as err:
        raise RecordError(f"{name} is corrupt: {err}.", "The rest of the run folder is untouched.") from err
    kind = data.pop("k", None) if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in ROW_KINDS:
        raise RecordError(f"{name} is not a timeline row: {line[:60]!r}.")
    if kind == "header":
        check_schema(data, SCHEMA, name)
    row = fast_row(kind, data)
    return decode(ROW_KINDS[kind], data, name) if row is None else row


def read_timeline(path: Path) -> Timeline | None:
    """Read one file; ``None`` when it holds no complete row yet. RecordError with file:line when it is corrupt."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as err:
        raise RecordError(f"Cannot read the timeline {path}: {err.strerror}.") from err
    complete = lines[:-1]  # what follows the last newline is a row cut off by a crash, or nothing
    timeline: Timeline | None = None
    for number, raw in enumerate(complete, 1):
        row = parse_row(raw, path, number)
        if timeline is None:
            if not isinstance(row, Header):
                raise RecordError(f"{path}:1 is not a timeline header.")
            timeline = Timeline(row)
        else:
            timeline.add(row)
    return timeline


def attach_errors(folder: Path) -> list[str]:
    """Why Hotlap did not come into processes of the run whose timelines lie in ``folder``; each wrote a file of it."""
    return [path.read_text(encoding="utf-8").strip() for path in sorted(folder.glob("*.error"))]


def training_timeline(folder: Path) -> Timeline | None:
    """The timeline of the process that trained (lowest rank, then most steps) with its workers', or ``None``."""
    return trainer_of([t for p in sorted(folder.glob("*.jsonl")) if (t := read_timeline(p)) is not None])


def trainer_of(found: list[Timeline]) -> Timeline | None:
    """Of the timelines of one folder, the one that :func:`training_timeline` means; workers and ranks are attached."""
    trainers = [t for t in found if t.header.role == "train" and t.step]
    if not trainers:
        return None
    best = min(trainers, key=lambda t: (t.header.rank, -_made(t)))
    by_rank: dict[int, Timeline] = {}
    for timeline in sorted(trainers, key=_made):
        by_rank[timeline.header.rank] = timeline
    by_rank[best.header.rank] = best
    for timeline in by_rank.values():
        timeline.workers = [w for w in found if w.header.role == "worker" and w.header.ppid == timeline.header.pid]
    if best.header.world > 1:
        best.ranks = [by_rank[rank] for rank in sorted(by_rank) if by_rank[rank] is not best]
    others = [t for t in trainers if t is not best and t.header.rank == best.header.rank]
    best.beside = sum(_overlap(best, other) for other in others)
    return best


def _overlap(one: Timeline, other: Timeline) -> bool:
    """Whether both trained at some time; the clock is the machine's."""
    return one.step[0].t < other.step[-1].t and other.step[0].t < one.step[-1].t


def _made(timeline: Timeline) -> int:
    """Steps made, of one that has made some: asked at every look at a long run, where adding up takes its time."""
    return timeline.step[-1].i + timeline.step[-1].n
