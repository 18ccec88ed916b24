"""A look at a timeline that takes the same time however long the run was: its head, its tail, and places between.

The rows of a file lie in the order of time, and each says which step it begins with and when. The mean step time
between any two rows is therefore exact without the rows between them: what a chart of a thousand points shows. What
goes on now is read from the tail, whole and strictly.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hotlap.guard.status import RECENT_S
from hotlap.records.errors import RecordError
from hotlap.records.rows import Header, Step
from hotlap.records.timeline import Timeline, parse_row

__all__ = ["MOST_POINTS", "Glimpse", "look", "trained"]

MOST_POINTS = 1000
"""More than a chart has pixels for."""
PLACES = 3000
"""Where a long file is looked into. Steps lie unevenly in it (late rows hold many), so that some places are idle."""
PLACE_BYTES = 4096
"""At each: a row of a step takes about 150 bytes, the largest other rows some thousand."""
WHOLE_BYTES = 1 << 20
"""A file up to this size is read whole."""
HEAD_BYTES = 1 << 16
TAIL_BYTES = 1 << 17
MOST_TAIL_BYTES = 1 << 24
STEP = re.compile(rb'^\{"k": ?"step", ?"i": ?(\d{1,15}), ?"n": ?\d{1,15}, ?"t": ?(\d{1,20}),', re.MULTILINE)
SETTING = re.compile(rb'^\{"k": ?"setting",.*(?=\n)', re.MULTILINE)


@dataclass(frozen=True)
class Glimpse:
    """What was seen of one process' timeline."""

    header: Header
    starts: list[tuple[int, int]]
    """(step, nanoseconds at which it began), ascending, at most :data:`MOST_POINTS`; the last: where the last step
    ended. Fewer than two: no step yet."""
    recent: Timeline
    """The last rows, as far as the tail goes, and what the head says of the script's setting up."""

    @property
    def steps(self) -> int:
        """Steps made so far."""
        return self.starts[-1][0] if self.starts else 0

    @property
    def train_s(self) -> float:
        """Seconds from the first recorded step to the last."""
        return (self.starts[-1][1] - self.starts[0][1]) / 1e9 if self.starts else 0.0

    @property
    def ended(self) -> bool:
        """Whether the process came to its own end."""
        return self.recent.end is not None


def trained(folder: Path) -> Glimpse | None:
    """Of the timelines in a folder, that of the process that trains: lowest rank, then one that has not ended, then
    the most steps. None: nobody has trained yet. RecordError when one is not what it should be.

    One that was killed has no end; it has ended once another of its rank has begun after its last step.
    """
    ranks: dict[int, list[Path]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        if path.name.startswith("worker-"):  # a name is cheaper than a look, and there may be thousands
            continue
        with _opened(path) as file:
            header, _ = _header(file, path)
        if header is not None and header.role == "train":
            ranks.setdefault(header.rank, []).append(path)
    for _, paths in sorted(ranks.items()):  # of the ranks behind the first that trains, the headers are enough
        seen = [found for path in paths if (found := look(path)) is not None and found.starts]
        if seen:
            return _training(seen)
    return None


def _training(seen: list[Glimpse]) -> Glimpse:
    """Of the processes of one rank, the one that trains now."""

    def over(one: Glimpse) -> bool:
        return one.ended or any(other.starts[0][1] >= one.starts[-1][1] for other in seen)

    return min(seen, key=lambda one: (over(one), -one.steps))


def look(path: Path) -> Glimpse | None:
    """Look at one file; None when it holds no complete row yet. RecordError when it is not what it should be."""
    with _opened(path) as file:
        header, begin = _header(file, path)
        return _look(file, path, header, begin) if header is not None else None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RecordError(f"{path.name} is no file.")
            yield file
    except OSError as err:
        raise RecordError(f"Cannot read the timeline {path.name}: {err.strerror}.") from err


def _header(file: BinaryIO, path: Path) -> tuple[Header | None, int]:
    """The first row, None while it is being written, and where it ends."""
    first = file.readline(HEAD_BYTES)
    if not first.endswith(b"\n"):
        if len(first) == HEAD_BYTES:
            raise RecordError(f"{path.name}:1 is not a timeline header.")
        return None, 0
    header = parse_row(first, Path(path.name), 1)
    if not isinstance(header, Header):
        raise RecordError(f"{path.name}:1 is not a timeline header.")
    return header, len(first)


def _look(file: BinaryIO, path: Path, header: Header, begin: int) -> Glimpse:
    size = os.fstat(file.fileno()).st_size
    recent = _ends(file, path, Timeline(header), (begin, size))
    seen = [(int(m[1]), int(m[2])) for m in _places(file, begin, size)]
    rows: list[Step] = recent.step
    seen += [(row.i, row.t) for row in rows]
    if rows:
        seen.append((rows[-1].i + rows[-1].n, rows[-1].t + rows[-1].w))
    return Glimpse(header, _thinned(seen), recent)


def _ends(file: BinaryIO, path: Path, timeline: Timeline, between: tuple[int, int]) -> Timeline:
    """What the head says of the script's setting up, which is said once, and the rows of the tail."""
    begin, end = between
    at, tail = _tail(file, begin, end)
    head = _read(file, begin, max(0, min(at, HEAD_BYTES) - begin))
    for found in SETTING.finditer(head):
        timeline.add(parse_row(found[0], Path(path.name), head.count(b"\n", 0, found.start()) + 2))
    lines, name = tail.split(b"\n")[:-1], Path(f"{path.name}, from the end")
    for n, line in enumerate(lines):
        timeline.add(parse_row(line, name, len(lines) - n))
    return timeline


def _tail(file: BinaryIO, begin: int, end: int) -> tuple[int, bytes]:
    """Where the last rows begin, and their bytes: as many as it takes to have all steps of the last seconds."""
    length = TAIL_BYTES
    while True:
        # from one byte earlier, so that a row that begins just there is seen to be a whole one
        at = max(begin - 1, end - length)
        raw = _read(file, at, end - at)
        first = raw.find(b"\n") + 1 or len(raw)
        times = [int(found[2]) for found in STEP.finditer(raw, first)]
        enough = bool(times) and times[-1] - times[0] >= RECENT_S * 1e9
        if at < begin or length >= MOST_TAIL_BYTES or enough:
            return at + first, raw[first:]
        length *= 2


def _places(file: BinaryIO, begin: int, end: int) -> Iterator[re.Match[bytes]]:
    """Rows of steps: all of a short file; of a long one, the first after each of so many places."""
    if end - begin <= WHOLE_BYTES:
        yield from STEP.finditer(_read(file, begin, end - begin))
        return
    for place in range(PLACES):
        # from one byte earlier, so that a row that begins just there is seen to be a whole one
        found = STEP.search(_read(file, begin + (end - begin) * place // PLACES - 1, PLACE_BYTES), 1)
        if found is not None:
            yield found


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    return os.pread(file.fileno(), size, at)


def _thinned(seen: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """In the order of steps and of time, evenly over the steps, the first and the last kept."""
    ordered: list[tuple[int, int]] = []
    for step, at in sorted(set(seen)):
        if not ordered or (step > ordered[-1][0] and at > ordered[-1][1]):
            ordered.append((step, at))
    if len(ordered) <= MOST_POINTS:
        return ordered
    first, last = ordered[0], ordered[-1]
    gap = (last[0] - first[0]) / (MOST_POINTS - 2)
    kept = [first]
    for point in ordered[1:-1]:
        if point[0] - kept[-1][0] >= gap:
            kept.append(point)
    return [*kept, last]
