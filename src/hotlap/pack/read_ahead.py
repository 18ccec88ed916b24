"""Reading the disk before a batch needs it, for packs that memory does not hold.

A gather that meets a page that is not in memory reads a little around it and waits: a tenth of what a disk gives. So
threads of its own read what the coming batches need, in long stretches, in the order of their need, and compute the
checksums on the way; a batch waits for its own stretches alone.

Under a block shuffle the rows of a window lie in few blocks, of which all will be used: whole chunks are read, one
window ahead, and let go once no row of theirs is to come. A pack that memory cannot hold is read past the page cache
(:mod:`hotlap.pack.resident`). Under a full shuffle a chunk is read whole only for its checksum, the first time; then
only the rows that are asked for.
"""

from __future__ import annotations

import mmap
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

import numpy as np

from hotlap.pack.reader import Indices, Pack
from hotlap.pack.resident import Resident

__all__ = ["ReadAhead"]

_MERGE_BYTES = 64 << 10
"""Rows closer than this are asked for in one go."""
_STRETCH_BYTES = (8 << 20) - 2 * mmap.PAGESIZE
"""Checked at once: long enough for a disk to stream, short enough that a batch need not wait for another's rows. With
the pages that it begins and ends in, four huge ones."""
_DEPTH = 8
"""Stretches that the page cache is told of while one is checked."""
_THREADS = 3
"""Stretches under way past the page cache: the disk reads some while one is checked. (One leaves the disk idle half of
the time, four are no better.)"""


@dataclass(eq=False)
class _Stretch:
    """Neighbouring chunks that were asked for together, and are let go together."""

    chunks: list[int]
    start: int
    size: int
    place: int
    """Where in the training they were asked for last."""
    future: Future[None] = field(default_factory=Future)
    moved: int | None = None
    """By how many bytes it lies elsewhere in memory; None: in the files' own."""
    users: int = 0
    """Batches that are being made of it."""
    is_gone: bool = False
    """No row is to come: its memory is free as soon as it has no users."""


class ReadAhead:
    """Told, batch by batch, which rows will be needed ``reach`` rows later; ``in_blocks`` says that the order does.

    A :class:`Resident` pack is read past the page cache, where the file system can.
    """

    def __init__(self, pack: Pack, names: Sequence[str], reach: int, in_blocks: bool) -> None:
        self._pack, self._names, self._reach, self._in_blocks = pack, list(names), reach, in_blocks
        self._resident = pack if isinstance(pack, Resident) else None
        self._lock = threading.Lock()
        self._coming: dict[int, _Stretch] = {}
        """By chunk."""
        self._stretches: dict[_Stretch, None] = {}
        """Those asked for longest ago first."""
        self._hinted: deque[_Stretch] = deque()
        """Stretches that are still to be read, and of which the kernel has been told the first few."""
        self._threads: ThreadPoolExecutor | None = None
        self._place: int | None = None

    def follows(self, place: int) -> bool:
        """Whether the training goes on from where it was, give or take: threads make batches out of turn.

        If not (the first batch, a resume), what had been read is let go.
        """
        with self._lock:
            last, self._place = self._place, place
            if last is not None and abs(place - last) <= self._reach:
                return True
            self._forget()
            return False

    def ask(self, rows: Indices, place: int) -> None:
        """``rows`` will be needed soon; ``place`` counts the rows that the training has had."""
        if not len(rows):
            return
        chunks = self._pack.chunks_of(rows)
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(1 if self._resident is None else _THREADS, "hotlap-pack-read")
            self._let_go(place)
            whole = chunks if self._in_blocks else chunks[~self._pack.trusted(chunks)]
            for stretch in {self._coming[c]: None for c in map(int, whole) if c in self._coming}:
                stretch.place = max(place, stretch.place)
                self._stretches[stretch] = self._stretches.pop(stretch)  # to the end
            for stretch in self._neighbours([c for c in map(int, whole) if c not in self._coming], place):
                self._hinted.append(stretch)
                stretch.future = self._threads.submit(self._read, stretch)
                self._stretches[stretch] = None
                self._coming.update(dict.fromkeys(stretch.chunks, stretch))
        if not self._in_blocks:
            known = self._pack.trusted(self._pack.chunk_number(rows))
            self._ask_rows(rows[known])

    @contextmanager
    def ready(self, rows: Indices) -> Iterator[None]:
        """Waits until what was asked for and holds ``rows`` has been read, and keeps it meanwhile; damage is raised
        here."""
        with self._lock:
            coming = (self._coming.get(int(chunk)) for chunk in self._pack.chunks_of(rows))
            held = list({found: None for found in coming if found is not None})
            for stretch in held:
                stretch.users += 1
        try:
            for stretch in held:
                with suppress(CancelledError):  # forgotten: the gather reads it itself
                    stretch.future.result()
            elsewhere = [(s.chunks, s.moved) for s in held if s.moved is not None]
            with nullcontext() if self._resident is None else self._resident.using(elsewhere):
                yield
        finally:
            with self._lock:
                for stretch in held:
                    stretch.users -= 1
                    self._free(stretch)

    def _let_go(self, place: int) -> None:
        """Stretches of which every row asked for has been had, threads that are behind included."""
        behind = place - self._reach - self._reach // 8
        while self._stretches:
            stretch = next(iter(self._stretches))
            if stretch.place >= behind or not stretch.future.done():
                break
            del self._stretches[stretch]
            for chunk in stretch.chunks:
                del self._coming[chunk]
            stretch.is_gone = True
            self._free(stretch)

    def _free(self, stretch: _Stretch) -> None:
        """Its memory goes first when memory is short."""
        if not stretch.is_gone or stretch.users:
            return
        if self._resident is not None and stretch.moved is not None:
            self._resident.let_go(stretch.start, stretch.moved)
            stretch.moved = None
        elif self._in_blocks and self._threads is not None:  # which takes as long as copying some of it
            self._threads.submit(self._pack.memory.let_go, stretch.start, stretch.size)

    def _forget(self) -> None:
        """Everything that was asked for, once what is under way is done."""
        self._hinted.clear()
        for stretch in self._stretches:
            stretch.future.cancel()
        wait_for([stretch.future for stretch in self._stretches if not stretch.future.cancelled()])
        for stretch in self._stretches:
            stretch.is_gone = True
            self._free(stretch)
        self._stretches.clear()
        self._coming.clear()

    def _neighbours(self, chunks: Sequence[int], place: int) -> list[_Stretch]:
        """Chunks that lie beside each other together, up to a length."""
        found: list[_Stretch] = []
        for chunk in sorted(chunks):
            start, size = self._pack.chunk_range(chunk)
            last = found[-1] if found else None
            if last and start - last.start - last.size <= _MERGE_BYTES and start + size - last.start <= _STRETCH_BYTES:
                last.chunks.append(chunk)
                last.size = start + size - last.start
            else:
                found.append(_Stretch([chunk], start, size, place))
        return found

    def _read(self, stretch: _Stretch) -> None:
        """Read and check a stretch; the page cache is told of the ones behind it."""
        if not threading.main_thread().is_alive():
            return  # the process ends, and waits for all that was asked for
        memory = self._pack.memory
        with suppress(IndexError):  # forgotten meanwhile
            self._hinted.popleft()
        if self._resident is not None:
            stretch.moved = self._resident.load(stretch.start, stretch.size)
        if stretch.moved is None:
            for coming in [stretch, *list(self._hinted)[:_DEPTH]]:
                memory.will_need(coming.start, coming.size)
        self._pack.trust(np.array(stretch.chunks), stretch.moved or 0)
        if stretch.moved is None:
            memory.touch(stretch.start, stretch.size)

    def _ask_rows(self, rows: Indices) -> None:
        for name in self._names:
            starts = np.sort(self._pack.starts(name, rows))
            if not len(starts):
                continue
            column = self._pack.columns[name]
            size = column.unit_bytes
            if column.kind != "tensor":
                size *= int(self._pack.lengths(name, rows).max())
            cuts = np.flatnonzero(np.diff(starts) > size + _MERGE_BYTES) + 1
            for run in np.split(starts, cuts):
                self._pack.memory.will_need(int(run[0]), int(run[-1] - run[0]) + size)

    def after_fork(self) -> None:
        """In a child: what threads were to read that are not here is asked for again."""
        self._lock, self._threads, self._place = threading.Lock(), None, None
        if self._resident is not None:
            self._resident.after_fork()
        self._hinted.clear()
        self._stretches.clear()
        self._coming.clear()

    def close(self) -> None:
        """Stop reading; what has not been begun is dropped."""
        with self._lock:
            if self._threads is not None:
                self._threads.shutdown(cancel_futures=True)
                self._threads = None
            self._place = None
            self._forget()
            if self._resident is not None:
                self._resident.close()
