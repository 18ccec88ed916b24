"""Following a run's timelines while they are written: only new bytes are read, and old rows are folded together.

Everything happens in Hotlap's own process. Of several ranks only the first is followed; the others are read when asked
for, since a week of eight ranks is not needed to see that steps take longer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from hotlap.records.errors import RecordError
from hotlap.records.rows import Header, Hits, Load, Step
from hotlap.records.timeline import Timeline, parse_row, trainer_of

__all__ = ["Follower", "fold_hits", "fold_loads", "fold_steps"]

MOST_ROWS = 16_000
"""Rows of steps held, 12 MiB; beyond, the older half is folded. A week's run writes a quarter of a million."""
MOST_HITS = MOST_LOADS = 2_000
FOLD = 16
"""Rows that become one."""
MOST_BYTES = 1 << 24
"""Read at once: a run that was joined late is caught up with in several looks. No row is as long."""

SILENT_S = 60.0
"""A process that is followed is left for another when it has made no step for so long while that one did."""


def fold_steps(rows: list[Step]) -> list[Step]:
    """Consecutive rows added up, FOLD at a time; those that measured other phases stay apart."""
    folded: list[Step] = []
    for at in range(0, len(rows), FOLD):
        group = sorted(rows[at : at + FOLD], key=_mask)
        folded += [_sum(list(alike)) for _, alike in groupby(group, key=_mask)]
    return sorted(folded, key=lambda row: row.i)


def _mask(row: Step) -> tuple[bool, ...]:
    return tuple(value is None for value in row.p)


def _sum(rows: list[Step]) -> Step:
    first, last = rows[0], rows[-1]
    phases = [None if v is None else sum(row.p[k] or 0 for row in rows) for k, v in enumerate(first.p)]
    return replace(
        first,
        n=sum(r.n for r in rows), w=sum(r.w for r in rows), p=phases, s=sum(r.s for r in rows),
        m=sum(r.m for r in rows), lo=sum(r.lo for r in rows), lo_n=sum(r.lo_n for r in rows),
        mx=max(r.mx for r in rows), l=last.l,
    )  # fmt: skip


def fold_hits(rows: list[Hits]) -> list[Hits]:
    """Consecutive rows of one sampling period added up, FOLD at a time, under the time of the last."""
    folded = []
    for every, same in groupby(rows, key=lambda row: row.every_ns):
        alike = list(same)
        for at in range(0, len(alike), FOLD):
            counts: dict[tuple[int, int], int] = {}
            group = alike[at : at + FOLD]
            for stack, phase, n in (hit for row in group for hit in row.h):
                counts[stack, phase] = counts.get((stack, phase), 0) + n
            folded.append(Hits(group[-1].t, every, [[stack, phase, n] for (stack, phase), n in counts.items()]))
    return folded


def fold_loads(rows: list[Load]) -> list[Load]:
    """Consecutive rows on one account added up, FOLD at a time, under the time of the last."""
    folded = []
    for _, same in groupby(rows, key=lambda row: (row.validation, row.training)):
        alike = list(same)
        for at in range(0, len(alike), FOLD):
            group = alike[at : at + FOLD]
            read = [row.read_bytes for row in group if row.read_bytes is not None]
            squares = [row.sq for row in group if row.sq is not None]
            folded.append(replace(
                group[-1],
                w=sum(r.w for r in group), batches=sum(r.batches for r in group), samples=sum(r.samples for r in group),
                decode=sum(r.decode for r in group), collate=sum(r.collate for r in group),
                cpu=sum(r.cpu for r in group), read_bytes=sum(read) if read else None,
                sq=sum(squares) if len(squares) == len(group) else None,
            ))  # fmt: skip
    return folded


class _File:
    """One timeline file, as far as it was read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.timeline: Timeline | None = None
        self.samples = 0
        self._offset = 0
        self._lines = 0

    def poll(self, size: int) -> bool:
        """Read what is new; a row still being written waits for the next look. True when there was something."""
        if size <= self._offset:
            return False
        with open(self.path, "rb") as file:
            file.seek(self._offset)
            new = file.read(MOST_BYTES)
        complete = new[: new.rfind(b"\n") + 1]
        if not complete and len(new) == MOST_BYTES:  # it would be read again and again, and nothing after it ever
            raise RecordError(f"{self.path}:{self._lines + 1} is longer than {MOST_BYTES} bytes: no row of a timeline.")
        for raw in complete.splitlines():
            self._lines += 1
            self._add(raw)
        self._offset += len(complete)
        return bool(complete)

    def _add(self, raw: bytes) -> None:
        row = parse_row(raw, self.path, self._lines)
        if self.timeline is None:
            if not isinstance(row, Header):
                raise RecordError(f"{self.path}:1 is not a timeline header.")
            self.timeline = Timeline(row)
            return
        self.timeline.add(row)
        if isinstance(row, Step):
            self.samples += row.s

    def fold(self) -> None:
        """Keep it bounded."""
        found = self.timeline
        if found is None:
            return
        rows = 0
        while len(found.step) > MOST_ROWS and len(found.step) != rows:  # a look may bring many times as many
            rows, half = len(found.step), MOST_ROWS // 2
            found.step[:half] = fold_steps(found.step[:half])
        if len(found.hits) > MOST_HITS:
            half = MOST_HITS // 2
            found.hits[:half] = fold_hits(found.hits[:half])
        if len(found.load) > MOST_LOADS:
            half = MOST_LOADS // 2
            found.load[:half] = fold_loads(found.load[:half])


def _replaced(trainer: Timeline, found: list[Timeline]) -> bool:
    if not trainer.step:
        return False
    last, rank = trainer.step[-1].t + trainer.step[-1].w, trainer.header.rank
    return any(t.header.role == "train" and t.header.rank == rank and t.step and t.step[0].t >= last for t in found)


def _goes_on(trainer: Timeline, found: list[Timeline]) -> bool:
    """Whether a process that trains still does, by the clock of those beside it."""
    beside = [t.step[-1].t + t.step[-1].w for t in found if t.header.role == "train" and t.step]
    last = trainer.step[-1].t + trainer.step[-1].w
    return trainer.end is None and max(beside) - last <= SILENT_S * 1e9


class Follower:
    """All timelines of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, _File] = {}
        self._following: Timeline | None = None

    def poll(self, every_rank: bool = False) -> bool:
        """Read what is new; True when there was something. RecordError when a file is not what it should be."""
        news = False
        for name, size in sorted(self._sizes()):
            file = self._files.setdefault(name, _File(self.folder / name))
            if every_rank or self._wanted(file):
                news |= file.poll(size)
                file.fold()
        return news

    def _sizes(self) -> Iterator[tuple[str, int]]:
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl"):
                    yield entry.name, entry.stat().st_size

    def _wanted(self, file: _File) -> bool:
        header = file.timeline.header if file.timeline is not None else None
        if header is None or header.role != "train":
            return True
        first = min(t.header.rank for t in self._found() if t.header.role == "train")
        return header.rank == first

    def _found(self) -> list[Timeline]:
        return [file.timeline for file in self._files.values() if file.timeline is not None]

    @property
    def training(self) -> Timeline | None:
        """The timeline of the process that trains now (when all have ended: trained last), with its workers'.

        A command may train several times, one process after the other, or several at once. One is stayed with while it
        goes on. One that was killed has no end; it has ended once another of its rank has begun after its last step.
        """
        found, kept = self._found(), self._following
        if kept is not None and _goes_on(kept, found):
            live = [t for t in found if t.header.role != "train" or t is kept or t.header.rank != kept.header.rank]
        else:
            live = [t for t in found if t.header.role != "train" or (t.end is None and not _replaced(t, found))]
        self._following = trainer_of(live) or self._following or trainer_of(found)
        return self._following

    @property
    def samples(self) -> int:
        """Samples that it has trained on so far; 0 when unknown."""
        training = self.training
        return next((f.samples for f in self._files.values() if f.timeline is training), 0) if training else 0
