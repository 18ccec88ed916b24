"""The rows of a timeline file, one JSON object per line. docs/reference/timeline.md describes them for other readers.

All times named ``t`` are nanoseconds of ``time.monotonic_ns()`` (one clock for every process of a machine);
``w`` is a wall duration in nanoseconds. ``None`` means not measured; 0 is a measured zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "PHASES",
    "SCHEMA",
    "End",
    "Event",
    "Frame",
    "Header",
    "Hits",
    "Load",
    "Mark",
    "Note",
    "Row",
    "Setting",
    "Site",
    "Stack",
    "Step",
    "Tick",
]

SCHEMA = "hotlap.timeline/1"

PHASES = (
    "data_wait",
    "h2d",
    "forward",
    "backward",
    "optimizer",
    "zero_grad",
    "validation",
    "checkpoint",
    "logging",
    "sync",
    "gc",
    "residual",
)
"""Exclusive phases of a step's wall time, in the order of :attr:`Step.p`. They add up to :attr:`Step.w`."""


@dataclass(frozen=True)
class Header:
    """First row (``k: header``): who wrote this file."""

    schema: str
    hotlap: str
    role: str
    """``train`` (a process that may train) or ``worker`` (a loader worker)."""
    pid: int
    ppid: int
    rank: int
    world: int
    argv: list[str]
    cwd: str
    python: str
    torch: str
    device: str
    """``cpu``, or the accelerator's name."""
    t: int
    unix_s: float
    phases: list[str] = field(default_factory=lambda: list(PHASES))
    worker: int | None = None


@dataclass(frozen=True, slots=True)  # a guard holds thousands of them, all day
class Step:
    """``k: step``: ``n`` consecutive steps (one at first; a long run aggregates more per row)."""

    i: int
    """Index of the first step, from 0."""
    n: int
    t: int
    """Start of the first step."""
    w: int
    """Wall time of all n steps. A step ends where its optimiser update returns."""
    p: list[int | None]
    """Nanoseconds per phase, exclusive, in the order of :data:`PHASES`."""
    s: int
    """Samples trained on, 0 when unknown."""
    m: int
    """Micro-batches (backward calls)."""
    lo: int = 0
    """Nanoseconds of ``data_wait`` spent in starting an epoch's iterator (workers, first batch)."""
    lo_n: int = 0
    """How many training-loader iterators were started."""
    mx: int = 0
    """Longest single step of the row."""
    l: list[float | None] = field(default_factory=list)  # noqa: E741 - one letter, written a million times
    """Losses given to backward in the row's last step, as computed by the script; None: NaN or infinite."""


@dataclass(frozen=True)
class Frame:
    """``k: frame``: one place in source, numbered."""

    id: int
    file: str
    line: int
    func: str
    user: bool
    """Whether the file is the user's own (not the standard library, site-packages or Hotlap)."""


@dataclass(frozen=True)
class Stack:
    """``k: stack``: frame ids, outermost first."""

    id: int
    f: list[int]


@dataclass(frozen=True)
class Hits:
    """``k: hits``: samples since the last such row: [stack id, phase index, count]. ``every_ns`` is the mean period."""

    t: int
    every_ns: int
    h: list[list[int]]


@dataclass(frozen=True)
class Event:
    """``k: event``: something rare that took the training thread: validation, checkpoint, loader_start, logging, ..."""

    kind: str
    t: int
    w: int
    i: int
    """Step index during which it happened."""
    stack: int | None = None
    d: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Load:
    """``k: load``: sample loading since the last such row, in this process (worker or trainer)."""

    t: int
    w: int
    """Wall nanoseconds inside ``fetch`` (one batch each), all of the work below included."""
    batches: int
    samples: int
    decode: int
    """Nanoseconds in known readers (images, audio, arrays)."""
    collate: int
    cpu: int
    """Thread CPU nanoseconds inside ``fetch``; ``w - cpu`` is waiting, mostly for storage."""
    read_bytes: int | None = None
    """Bytes that came from the storage device (not the page cache)."""
    validation: bool = False
    training: bool = True
    sq: float | None = None
    """Sum over the batches of the square of their seconds inside ``fetch``: with ``w``, how uneven they are."""


@dataclass(frozen=True)
class Tick:
    """``k: tick``: telemetry, about once a second. ``cpu`` is this process' CPU nanoseconds so far."""

    t: int
    rss_bytes: int
    cpu: int
    children_rss_bytes: int | None = None
    read_bytes: int | None = None
    write_bytes: int | None = None
    device_bytes: int | None = None
    device_busy_frac: float | None = None
    minor_faults: int | None = None
    """Page faults of this process so far that needed no reading from disk."""
    system_cpu: int | None = None
    """Of ``cpu``, what the kernel took for this process: faults and calls."""


@dataclass(frozen=True)
class Site:
    """``k: site``: calls of one kind (``sync``, ``print``, ...) from one line, since the last such row."""

    t: int
    kind: str
    op: str
    frame: int
    n: int
    w: int


@dataclass(frozen=True)
class Setting:
    """``k: setting``: how the script set something up: loader, model, optimizer, precision, threads, debug.

    ``value`` is documented per name in docs/reference/timeline.md.
    """

    name: str
    value: dict[str, Any]
    frame: int | None = None


@dataclass(frozen=True)
class Mark:
    """``k: mark``: what a lever, an ablation or an export did here. ``state``: applied, no-effect, refused, failed."""

    kind: str
    """``lever``, ``ablation`` or ``export`` (of figures to the script's tracker ``id``)."""
    id: str
    state: str
    count: int
    why: str = ""


@dataclass(frozen=True)
class Note:
    """``k: note``: a probe that failed and was undone, or stepped aside, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class End:
    """``k: end``: the process ended by itself. Absent after kill -9."""

    t: int
    reason: str


Row = Header | Step | Frame | Stack | Hits | Event | Load | Tick | Site | Setting | Mark | Note | End
