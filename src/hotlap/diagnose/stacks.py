"""Sampled stacks, ranked by the user's line: the innermost frame that is the user's own gets the blame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from hotlap.diagnose.phases import phase_names
from hotlap.records.findings import Where
from hotlap.records.rows import Frame
from hotlap.records.timeline import Timeline

__all__ = [
    "Sampled",
    "StackBook",
    "collate_places",
    "collect",
    "merge",
    "sampling_period_ns",
    "user_caller",
    "user_where",
]


Place = tuple[str, str, int, int]
"""File, function, first and last line of a function's code."""


@dataclass(frozen=True)
class Sampled:
    """One stack in one phase, and how often it was seen."""

    frames: tuple[Frame, ...]
    phase: str
    count: int

    @property
    def user(self) -> tuple[Frame, ...]:
        """The user's own frames, outermost first."""
        return tuple(frame for frame in self.frames if frame.user)

    @property
    def blamed(self) -> Frame | None:
        """The innermost user frame."""
        return next((frame for frame in reversed(self.frames) if frame.user), None)


@dataclass(frozen=True)
class StackBook:
    """Samples of one process (or several), with the text of the user's lines."""

    samples: list[Sampled] = field(default_factory=list)
    source: dict[str, str] = field(default_factory=dict)
    loops: dict[str, str] = field(default_factory=dict)
    collates: tuple[Place, ...] = ()
    """Where the loaders' collate functions are written, as far as their names do not say it."""

    def total(self) -> int:
        """How many samples."""
        return sum(sample.count for sample in self.samples)

    def where(self, keep: Callable[[Sampled], bool]) -> StackBook:
        """The samples for which ``keep`` holds."""
        return replace(self, samples=[s for s in self.samples if keep(s)])

    def part(self, holds: Callable[[Sampled], bool]) -> float:
        """Share of the samples for which ``holds``; 0.0 without samples."""
        total = self.total()
        return self.where(holds).total() / total if total else 0.0

    def phase(self, *names: str) -> StackBook:
        """The samples of these phases."""
        return self.where(lambda sample: sample.phase in names)

    def text(self, frame: Frame) -> str:
        """Source text of a frame's line, stripped; empty when unknown."""
        return self.source.get(f"{frame.file}:{frame.line}", "").strip()

    def loop(self, frame: Frame) -> str:
        """Header of the innermost loop around a frame's line; empty when none."""
        return self.loops.get(f"{frame.file}:{frame.line}", "").strip()

    def user_texts(self, sample: Sampled) -> list[str]:
        """Texts of the user's lines on a stack, outermost first."""
        return [self.text(frame) for frame in sample.user]

    def lines(self, limit: int, blame: Callable[[Sampled], Frame | None] | None = None) -> list[Where]:
        """The user's lines, most samples first, each with its share of all samples here."""
        counts: Counter[tuple[str, int, str]] = Counter()
        texts: dict[tuple[str, int, str], str] = {}
        for sample in self.samples:
            frame = sample.blamed if blame is None else blame(sample)
            if frame is None:
                continue
            key = (frame.file, frame.line, frame.func)
            counts[key] += sample.count
            texts[key] = self.text(frame)
        total = max(1, self.total())
        ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        return [Where(*key, text=texts[key], share=count / total) for key, count in ranked]

    def evidence(self, limit: int) -> list[dict[str, Any]]:
        """Chains of user frames as text, most samples first: ``[{frames: [...], share}]``."""
        counts: Counter[tuple[str, ...]] = Counter()
        for sample in self.samples:
            chain = tuple(f"{f.func} {f.file}:{f.line}  {self.text(f)}".rstrip() for f in sample.user)
            leaf = sample.frames[-1] if sample.frames else None
            if leaf is not None and not leaf.user:
                chain += (f"{leaf.func} {leaf.file}:{leaf.line}",)
            if chain:
                counts[chain] += sample.count
        total = max(1, self.total())
        return [{"frames": list(chain), "share": count / total} for chain, count in counts.most_common(limit)]


def collect(timeline: Timeline, start_ns: int, end_ns: int | None = None) -> StackBook:
    """Samples written down after ``start_ns`` (until ``end_ns``). Ids that the file does not explain are dropped.

    Where the sampler slowed down, each of its samples counts for as many as it would have taken at its fastest.
    """
    phases = phase_names(timeline.header.phases)
    counts: Counter[tuple[int, int]] = Counter()
    fastest_ns = sampling_period_ns(timeline)
    for row in timeline.hits:
        if row.t < start_ns or (end_ns is not None and row.t > end_ns):
            continue
        for hit in row.h:
            if len(hit) == 3 and hit[2] > 0:
                counts[hit[0], hit[1]] += round(hit[2] * row.every_ns / fastest_ns)
    samples = []
    for (stack_id, phase), count in counts.items():
        stack = timeline.stack.get(stack_id)
        if stack is None or not 0 <= phase < len(phases):
            continue
        frames = tuple(timeline.frame[f] for f in stack.f if f in timeline.frame)
        samples.append(Sampled(frames, phases[phase], count))
    return StackBook(samples, timeline.source, timeline.loops, collate_places(timeline))


def collate_places(timeline: Timeline) -> tuple[Place, ...]:
    """What the loaders' rows tell of their collate functions."""
    rows = [row.value.get("collate") for row in timeline.setting if row.name == "loader"]
    places = [place for row in rows if isinstance(row, list) for place in row if len(place) == 4]
    return tuple(dict.fromkeys((str(p[0]), str(p[1]), int(p[2]), int(p[3])) for p in places))


def sampling_period_ns(timeline: Timeline) -> int:
    """What one sample of :func:`collect` stands for, in ns of the sampled thread. > 0."""
    return max(1, min((row.every_ns for row in timeline.hits), default=1))


def merge(books: Iterable[StackBook], source: dict[str, str], loops: dict[str, str]) -> StackBook:
    """Samples of several processes together; line texts of any of them."""
    samples: list[Sampled] = []
    collates: dict[Place, None] = {}
    for book in books:
        samples += book.samples
        collates |= dict.fromkeys(book.collates)
        source = {**book.source, **source}
        loops = {**book.loops, **loops}
    return StackBook(samples, source, loops, tuple(collates))


def user_caller(timeline: Timeline, stack_id: int | None) -> Where | None:
    """The user's line that called the innermost user function of a stack: where a cadence is decided."""
    stack = timeline.stack.get(stack_id) if stack_id is not None else None
    frames = [timeline.frame[f] for f in stack.f if f in timeline.frame and timeline.frame[f].user] if stack else []
    return user_where(timeline, frame_id=frames[-2].id) if len(frames) > 1 else None


def user_where(timeline: Timeline, stack_id: int | None = None, frame_id: int | None = None) -> Where | None:
    """The innermost user frame of a stack, or one frame, as a place; None when neither is known."""
    frame = timeline.frame.get(frame_id) if frame_id is not None else None
    if frame is None and stack_id is not None and (stack := timeline.stack.get(stack_id)) is not None:
        frames = [timeline.frame[f] for f in stack.f if f in timeline.frame]
        frame = next((f for f in reversed(frames) if f.user), None)
    if frame is None:
        return None
    return Where(frame.file, frame.line, frame.func, timeline.source.get(f"{frame.file}:{frame.line}", "").strip())
