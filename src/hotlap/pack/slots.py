"""Memory for stretches of a pack, in a range of addresses that was reserved: taken, given back, and taken again.

Memory that is used again needs not be zeroed by the kernel, and huge pages are filled by a disk several times as fast
as small ones: beside a disk of 6 GB/s, fresh small pages came to 1 GB/s, and took half a core to do it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from collections import defaultdict

from hotlap.pack.libc import FAILED, MAP_FIXED, libc
from hotlap.records.errors import HotlapError

__all__ = ["Slots"]

_HUGE = 2 << 20
"""Bytes of a huge page on x86-64, and on arm64 with pages of 4 KiB."""
_DONTNEED, _HUGEPAGE, _WIPEONFORK = 4, 14, 18
"""MADV_* of asm-generic/mman-common.h."""


class Slots:
    """Slots between the addresses ``first`` and ``behind``.

    A child process of a fork gets none of what is in them (the disk may be writing there), and takes its own.
    """

    def __init__(self, first: int, behind: int) -> None:
        self._first, self._behind = first, behind
        self._libc = libc()
        self._lock = threading.Lock()
        self._next = first
        self._sizes: dict[int, int] = {}
        self._free: dict[int, list[int]] = defaultdict(list)
        """By size, those that hold memory, the latest given back last."""
        self._empty: dict[int, list[int]] = defaultdict(list)
        """Those whose memory went back to the kernel."""

    def take(self, size: int) -> int | None:
        """The address of at least ``size`` bytes, at the beginning of a page; None where the range is used up.

        Where no free slot of that size holds memory, as much goes back to the kernel from those of other sizes.
        """
        size = _rounded(size)
        with self._lock:
            if self._free[size]:
                return self._free[size].pop()
            self._release(size)
            return self._empty[size].pop() if self._empty[size] else self._new(size)

    def _new(self, size: int) -> int | None:
        unit = _HUGE if size >= _HUGE else mmap.PAGESIZE
        address = -(-self._next // unit) * unit
        if address + size > self._behind:
            return None
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED
        if self._libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) == FAILED:
            raise HotlapError(f"No memory for {size} bytes to read ahead: {os.strerror(ctypes.get_errno())}.")
        for advice in (_HUGEPAGE, _WIPEONFORK):  # a kernel that knows them not is slower, no more
            self._libc.madvise(address, size, advice)
        self._next, self._sizes[address] = address + size, size
        return address

    def give_back(self, address: int) -> None:
        """Its bytes are not needed any more."""
        with self._lock:
            self._free[self._sizes[address]].append(address)

    def release(self) -> None:
        """The memory of those that are free goes back to the kernel."""
        with self._lock:
            self._release(self._behind - self._first)

    def _release(self, wanted: int) -> None:
        for size, addresses in self._free.items():
            while addresses and wanted > 0:
                self._libc.madvise(addresses[0], size, _DONTNEED)
                self._empty[size].append(addresses.pop(0))
                wanted -= size

    def after_fork(self) -> None:
        """In a child: no slots yet."""
        self._lock = threading.Lock()
        self._next = self._first
        for slots in (self._sizes, self._free, self._empty):
            slots.clear()


def _rounded(size: int) -> int:
    """Few sizes, so that what is given back fits what is asked for next: whole huge pages, or a power of two."""
    if size > _HUGE // 2:
        return -(-size // _HUGE) * _HUGE
    return max(mmap.PAGESIZE, 1 << (size - 1).bit_length())
