"""A pack that memory does not hold, of which stretches lie in memory of ours while batches are made of them.

A gather finds a row by one number, its first byte in the pack's memory. So the memory that the disk is read into lies
behind the files' own addresses, and rows of a stretch that was read are found there: nothing is moved or mapped anew.
Only who holds the stretch looks there; for everybody else the row lies in its file, and the bytes are the same.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from hotlap.pack.direct import Direct
from hotlap.pack.memory import Memory
from hotlap.pack.reader import Indices, Pack
from hotlap.pack.slots import Slots

__all__ = ["Resident"]

_SPARE = 2
"""Addresses for stretches, as a multiple of what is to lie in memory at once: between those that are held there may be
some too short for the next. Only what is used is memory."""
_LEAST_SPARE_BYTES = 128 << 20


class _Here(threading.local):
    """Of this thread: by how many bytes the rows of each chunk lie elsewhere."""

    moved: Indices | None = None


class Resident(Pack):
    """The same pack, with the same checksums found right, and a memory of its own for ``held_bytes`` at once."""

    def __init__(self, pack: Pack, held_bytes: int) -> None:
        vars(self).update(vars(pack))
        files = [(self.folder / part.file, part.size_bytes) for part in self.manifest.parts]
        self.memory = Memory(files, max(_SPARE * held_bytes, _LEAST_SPARE_BYTES))
        self._base = self.memory.tensor.data_ptr()
        self._direct = Direct(self.memory.starts, [path for path, _ in files])
        self._slots = Slots(*self.memory.spare)
        self._here = _Here()

    def load(self, start: int, size: int) -> int | None:
        """Read this range past the page cache; by how many bytes it lies elsewhere now.

        None where the file system cannot, or there are no more addresses.
        """
        first = _page(start)
        length = _page(start + size + mmap.PAGESIZE - 1) - first
        address = self._slots.take(length)
        if address is None:
            return None
        if not self._direct.read(first, length, address):
            self._slots.give_back(address)
            return None
        return address - self._base - first

    def let_go(self, start: int, moved: int) -> None:
        """The memory of the range that :meth:`load` read from ``start`` on is for others now."""
        self._slots.give_back(self._base + _page(start) + moved)

    @contextmanager
    def using(self, stretches: Iterable[tuple[list[int], int]]) -> Iterator[None]:
        """In here, and in this thread, the rows of these chunks are found where they were read to, ``moved`` bytes
        on. Whoever enters sees to it that they are not let go meanwhile."""
        moved = np.zeros(len(self._chunks), np.int64)
        for chunks, by in stretches:
            moved[chunks] = by
        before, self._here.moved = self._here.moved, moved
        try:
            yield
        finally:
            self._here.moved = before

    def starts(self, name: str, rows: Indices) -> Indices:
        """First byte of each row of a column, in :attr:`memory`."""
        found, moved = super().starts(name, rows), self._here.moved
        return found if moved is None else found + moved[self.chunk_number(rows)]

    def after_fork(self) -> None:
        """In a child: nothing is read yet."""
        self._direct.after_fork()
        self._slots.after_fork()

    def close(self) -> None:
        """Memory that is not in use, and the files, go back to the system; what is asked for next is read again."""
        self._slots.release()
        self._direct.close()


def _page(at: int) -> int:
    return at // mmap.PAGESIZE * mmap.PAGESIZE
