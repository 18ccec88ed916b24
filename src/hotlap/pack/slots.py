"""Memory for stretches of a pack, in a range of addresses that was reserved: taken, given back, and taken again.

Memory that is used again needs not be zeroed by the kernel, and a disk fills huge pages faster than small ones.
"""

from __future__ import annotations

import bisect
import mmap
import threading

from hotlap.pack.libc import FAILED, MAP_FIXED, libc

__all__ = ["Slots"]

_MAPPED_AT_ONCE = 64 << 20
"""Bytes by which the memory grows: huge pages lie across slots, so that none is rounded up to them."""
_DONTNEED, _HUGEPAGE, _WIPEONFORK = 4, 14, 18
"""MADV_* of asm-generic/mman-common.h."""


class Slots:
    """Slots between the addresses ``first`` and ``behind``, in whole pages, the lowest that fits first.

    A child process of a fork gets none of what is in them (the disk may be writing there), and takes its own.
    """

    def __init__(self, first: int, behind: int) -> None:
        self._first, self._behind = first, behind
        self._libc = libc()
        self._lock = threading.Lock()
        self._end = first
        """From here on nothing is mapped."""
        self._taken: dict[int, int] = {}
        self._free: list[tuple[int, int]] = []
        """(address, bytes) in order; no two touch."""

    def take(self, size: int) -> int | None:
        """The address of ``size`` bytes (whole pages); None where the range or the memory is used up."""
        with self._lock:
            number = next((n for n, (_, free) in enumerate(self._free) if free >= size), None)
            if number is None:
                if not self._grow(size):
                    return None
                number = len(self._free) - 1
            address, free = self._free.pop(number)
            if free > size:
                self._free.insert(number, (address + size, free - size))
            self._taken[address] = size
            return address

    def _grow(self, size: int) -> bool:
        """Map as much that ``size`` fits at the end."""
        last = self._free[-1] if self._free and sum(self._free[-1]) == self._end else (self._end, 0)
        more = min(max(size - last[1], _MAPPED_AT_ONCE), self._behind - self._end)
        if last[1] + more < size:
            return False
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED
        if self._libc.mmap(self._end, more, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) == FAILED:
            return False
        for advice in (_HUGEPAGE, _WIPEONFORK):  # a kernel that knows them not is slower, no more
            self._libc.madvise(self._end, more, advice)
        self._add(self._end, more)
        self._end += more
        return True

    def give_back(self, address: int) -> None:
        """Its bytes are not needed any more."""
        with self._lock:
            self._add(address, self._taken.pop(address))

    def _add(self, address: int, size: int) -> None:
        """To what is free, as one with its neighbours."""
        number = bisect.bisect(self._free, (address, 0))
        if number < len(self._free) and self._free[number][0] == address + size:
            size += self._free.pop(number)[1]
        if number and sum(self._free[number - 1]) == address:
            number -= 1
            before, length = self._free.pop(number)
            address, size = before, length + size
        self._free.insert(number, (address, size))

    def release(self) -> None:
        """The memory of what is free goes back to the kernel."""
        with self._lock:
            for address, size in self._free:
                self._libc.madvise(address, size, _DONTNEED)

    def after_fork(self) -> None:
        """In a child: no slots yet."""
        self._lock = threading.Lock()
        self._end = self._first
        self._taken.clear()
        self._free.clear()
