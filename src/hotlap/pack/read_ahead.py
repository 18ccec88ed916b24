"""Reading the disk before a batch needs it, for packs that memory does not hold.

A gather that meets a page that is not in memory reads a little around it and waits: a tenth of what a disk gives. So a
thread of its own reads what the coming batches need, in long stretches, in the order of their need, and computes the
checksums on the way; a batch waits for its own stretches alone.

Under a block shuffle the rows of a window lie in few blocks, of which all will be used: whole chunks are read, one
window ahead, and their pages let go once the window has passed. (Pages that were used are what the kernel keeps
longest, and those read ahead what it drops first.) Under a full shuffle a chunk is read whole only for its
checksum, the first time; then only the rows that are asked for.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from hotlap.pack.reader import Indices, Pack

__all__ = ["ReadAhead"]

_MERGE_BYTES = 64 << 10
"""Rows closer than this are asked for in one go."""
_STRETCH_BYTES = 8 << 20
"""Checked at once: long enough for a disk to stream, short enough that a batch need not wait for another's rows."""
_DEPTH = 8
"""Stretches that the disk is kept busy with while one is checked."""


class ReadAhead:
    """Told, batch by batch, which rows will be needed ``reach`` rows later; ``in_blocks`` says that the order does."""

    def __init__(self, pack: Pack, names: Sequence[str], reach: int, in_blocks: bool) -> None:
        self._pack, self._names, self._reach, self._in_blocks = pack, list(names), reach, in_blocks
        self._lock = threading.Lock()
        self._coming: dict[int, Future[None]] = {}
        self._used: deque[tuple[int, int]] = deque()
        """(place in the training at which it was asked for, chunk), oldest first."""
        self._hinted: deque[tuple[int, int]] = deque()
        """Stretches that the thread has still to read, and of which the kernel has been told the first few."""
        self._thread: ThreadPoolExecutor | None = None
        self._place: int | None = None

    def follows(self, place: int) -> bool:
        """Whether the training goes on from where it was, give or take: threads make batches out of turn.

        If not (the first batch, a resume), what had been read is taken for forgotten.
        """
        with self._lock:
            last, self._place = self._place, place
            if last is not None and abs(place - last) <= self._reach:
                return True
            self._coming.clear()
            self._used.clear()
            return False

    def ask(self, rows: Indices, place: int) -> None:
        """``rows`` will be needed soon; ``place`` counts the rows that the training has had."""
        if not len(rows):
            return
        chunks = self._pack.chunks_of(rows)
        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "hotlap-pack-read")
            self._let_go(place)
            whole = chunks if self._in_blocks else chunks[~self._pack.trusted(chunks)]
            new = [int(c) for c in whole if int(c) not in self._coming]
            for run in self._runs(new):
                self._hinted.append(self._stretch(run))
                future = self._thread.submit(self._read, run)
                for chunk in run:
                    self._coming[chunk] = future
                    self._used.append((place, chunk))
        if not self._in_blocks:
            known = self._pack.trusted(self._pack.chunk_number(rows))
            self._ask_rows(rows[known])

    def wait(self, rows: Indices) -> None:
        """Until what was asked for and holds ``rows`` has been read; damage is raised here."""
        for chunk in self._pack.chunks_of(rows):
            future = self._coming.get(int(chunk))
            if future is not None:
                future.result()

    def _let_go(self, place: int) -> None:
        """Chunks of windows that have passed: their pages go first when memory is short."""
        while self._used and self._used[0][0] + 2 * self._reach < place:
            _, chunk = self._used.popleft()
            self._coming.pop(chunk)
            if self._in_blocks:
                self._pack.memory.let_go(*self._pack.chunk_range(chunk))

    def _runs(self, chunks: Sequence[int]) -> list[list[int]]:
        """Neighbours together, up to a stretch."""
        runs: list[list[int]] = []
        size, behind = 0, -1
        for chunk in sorted(chunks):
            start, length = self._pack.chunk_range(chunk)
            if runs and start - behind <= _MERGE_BYTES and size + length <= _STRETCH_BYTES:
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

    def _read(self, run: list[int]) -> None:
        """Check and map a stretch while the disk reads the ones behind it."""
        start, size = self._hinted.popleft()
        self._pack.memory.will_need(start, size)
        for later in range(min(_DEPTH, len(self._hinted))):
            self._pack.memory.will_need(*self._hinted[later])
        self._pack.trust(np.array(run))
        self._pack.memory.touch(start, size)

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
            if self._thread is not None:
                self._thread.shutdown(cancel_futures=True)
                self._thread = None
            self._place = None
            self._coming.clear()
            self._hinted.clear()
            self._used.clear()
