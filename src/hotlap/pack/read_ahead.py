"""Reading the disk before a batch needs it, for packs that memory does not hold.

A gather that meets a page that is not in memory reads a little around it and waits: a tenth of what a disk gives. So
threads of its own read what the coming batches need, in long stretches, in the order of their need, and compute the
checksums on the way; a batch waits for its own stretches alone.

Under a block shuffle the rows of a window lie in few blocks, of which all will be used: whole chunks are read, one
window ahead, and let go once no row of theirs is to come. A pack that memory cannot hold is read past the page cache
(:mod:`hotlap.pack.direct`). Under a full shuffle a chunk is read whole only for its checksum, the first time; then
only the rows that are asked for.
"""

from __future__ import annotations

import contextlib
import mmap
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass

import numpy as np

from hotlap.pack.reader import Indices, Pack

__all__ = ["ReadAhead"]

_MERGE_BYTES = 64 << 10
"""Rows closer than this are asked for in one go."""
_STRETCH_BYTES = 8 << 20
"""Checked at once: long enough for a disk to stream, short enough that a batch need not wait for another's rows."""
_DEPTH = 8
"""Stretches that the page cache is told of while one is checked."""
_THREADS = 3
"""Stretches under way past the page cache: the disk reads some while one is checked."""


@dataclass
class _Read:
    """A chunk that was asked for."""

    future: Future[None]
    place: int
    """Where in the training it was asked for last."""


class ReadAhead:
    """Told, batch by batch, which rows will be needed ``reach`` rows later; ``in_blocks`` says that the order does.

    ``direct``: past the page cache, where the file system can.
    """

    def __init__(self, pack: Pack, names: Sequence[str], reach: int, in_blocks: bool, direct: bool = False) -> None:
        self._pack, self._names, self._reach, self._in_blocks = pack, list(names), reach, in_blocks
        self._direct = direct and in_blocks
        self._lock = threading.Lock()
        self._coming: dict[int, _Read] = {}
        """By chunk; those asked for longest ago first."""
        self._hinted: deque[tuple[int, int]] = deque()
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
                self._threads = ThreadPoolExecutor(_THREADS if self._direct else 1, "hotlap-pack-read")
            self._let_go(place)
            whole = chunks if self._in_blocks else chunks[~self._pack.trusted(chunks)]
            new = []
            for chunk in map(int, whole):
                read = self._coming.pop(chunk, None)
                if read is None:
                    new.append(chunk)
                else:
                    self._coming[chunk] = _Read(read.future, max(place, read.place))
            for run in self._runs(new):
                stretch = self._stretch(run)
                self._hinted.append(stretch)
                future = self._threads.submit(self._read, run, *stretch)
                self._coming.update((chunk, _Read(future, place)) for chunk in run)
        if not self._in_blocks:
            known = self._pack.trusted(self._pack.chunk_number(rows))
            self._ask_rows(rows[known])

    def wait(self, rows: Indices) -> None:
        """Until what was asked for and holds ``rows`` has been read; damage is raised here."""
        for chunk in self._pack.chunks_of(rows):
            read = self._coming.get(int(chunk))
            if read is not None:
                with contextlib.suppress(CancelledError):  # forgotten: the gather reads it itself
                    read.future.result()

    def _let_go(self, place: int) -> None:
        """Chunks of which every row asked for has been had, threads that are behind included."""
        behind = place - self._reach - self._reach // 8
        while self._coming:
            chunk, read = next(iter(self._coming.items()))
            if read.place >= behind or not read.future.done():
                break
            del self._coming[chunk]
            self._free(chunk)

    def _free(self, chunk: int) -> None:
        """Its memory goes first when memory is short."""
        start, size = self._pack.chunk_range(chunk)
        if self._direct:
            self._pack.memory.direct.let_go(start, size)
        elif self._in_blocks:
            self._pack.memory.let_go(start, size)

    def _forget(self) -> None:
        """Everything that was asked for, once what is under way is done."""
        self._hinted.clear()
        for read in self._coming.values():
            read.future.cancel()
        wait_for([read.future for read in self._coming.values() if not read.future.cancelled()])
        for chunk in self._coming:
            self._free(chunk)
        self._coming.clear()

    def _runs(self, chunks: Sequence[int]) -> list[list[int]]:
        """Neighbours together, up to a stretch."""
        runs: list[list[int]] = []
        size, behind = 0, -1
        gap = mmap.PAGESIZE - 1 if self._direct else _MERGE_BYTES  # pages between chunks would not be let go
        for chunk in sorted(chunks):
            start, length = self._pack.chunk_range(chunk)
            if runs and start - behind <= gap and size + length <= _STRETCH_BYTES:
                runs[-1].append(chunk)
                size += length
            else:
                runs.append([chunk])
                size = length
            behind = start + length
        return runs

    def _stretch(self, run: Sequence[int]) -> tuple[int, int]:
        start, _ = self._pack.chunk_range(run[0])
        last, length = self._pack.chunk_range(run[-1])
        return start, last + length - start

    def _read(self, run: list[int], start: int, size: int) -> None:
        """Read and check a stretch; the page cache is told of the ones behind it."""
        memory = self._pack.memory
        with contextlib.suppress(IndexError):  # forgotten meanwhile
            self._hinted.popleft()
        direct = self._direct and memory.direct.load(start, size)
        if not direct:
            for stretch in [(start, size), *list(self._hinted)[:_DEPTH]]:
                memory.will_need(*stretch)
        self._pack.trust(np.array(run))
        if not direct:
            memory.touch(start, size)

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

    def close(self) -> None:
        """Stop reading; what has not been begun is dropped."""
        with self._lock:
            if self._threads is not None:
                self._threads.shutdown(cancel_futures=True)
                self._threads = None
            self._place = None
            self._forget()
