"""Stretches of a mapped file read past the page cache, into memory of our own at the addresses of the map.

A pack that memory does not hold drives the page cache against its limit: the kernel copies every byte, keeps what was
used and drops what was read ahead. ``O_DIRECT`` reads as fast as the disk gives, and holds what is asked for alone.
What was read takes the place of the map by one ``mremap``, whole, so that a gather by address finds it and never sees
half of it; the file is mapped there again when it has been used. Bytes are the same before, meanwhile and after.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.pack.libc import FAILED, MAP_FIXED, libc
from hotlap.records.errors import HotlapError

__all__ = ["Direct"]

_MOVE_THERE = 1 | 2
"""MREMAP_MAYMOVE | MREMAP_FIXED of linux/mman.h."""
_HUGEPAGE = 14
"""MADV_HUGEPAGE."""
_HUGE = 2 << 20
"""Bytes of a huge page on x86-64, and on arm64 with pages of 4 KiB."""
_CAN = sys.platform == "linux"
_FILES_FRAC = 0.25
"""Of the files that the process may have open, the share that a pack takes at most: the rest is the training's."""


class Direct:
    """Reads files that are mapped at ``base + starts[i]``. A file stays open from its first stretch on.

    One open file for reading and for mapping: only maps of one open file grow together again, and the kernel allows a
    process 65,530 of them.
    """

    def __init__(self, base: int, starts: np.ndarray[Any, np.dtype[np.int64]], paths: Sequence[Path]) -> None:
        self._libc, self._base, self._starts, self._paths = libc(), base, starts, list(paths)
        self._handles: dict[int, int] = {}
        self._lock = threading.Lock()
        self.close = weakref.finalize(self, _close, self._handles)
        """Close the files. What is mapped stays mapped."""

    def load(self, start: int, size: int) -> bool:
        """Read this range and put it in its place; False where the file system or the machine cannot."""
        return all(self._load(*piece) for piece in self._pieces(start, size))

    def after_fork(self) -> None:
        """In a child: a lock that nobody holds."""
        self._lock = threading.Lock()

    def let_go(self, start: int, size: int) -> None:
        """The files take their places again, and the memory is free."""
        for number, offset, length in self._pieces(start, size):
            if number in self._handles:
                self._map(number, offset, length)

    def _pieces(self, start: int, size: int) -> list[tuple[int, int, int]]:
        """(file, offset, bytes) of whole pages that cover the range."""
        page, found, behind = mmap.PAGESIZE, [], start + size
        number = int(np.searchsorted(self._starts, start, "right")) - 1
        while start < behind:
            first, end = int(self._starts[number]), int(self._starts[number + 1])
            offset = (start - first) // page * page
            stop = -(-(min(behind, end) - first) // page) * page
            if stop > offset:
                found.append((number, offset, stop - offset))
            start, number = end, number + 1
        return found

    def _load(self, number: int, offset: int, length: int) -> bool:
        handle = self._opened(number)
        if handle is None:
            return False
        there = self._base + int(self._starts[number]) + offset
        place = self._fresh(length, there % _HUGE)
        if place is None:
            return False
        if (
            _read(handle, place, offset, length)
            and self._libc.mprotect(place, length, mmap.PROT_READ) == 0
            and self._libc.mremap(place, length, length, _MOVE_THERE, there) != FAILED
        ):
            return True
        self._libc.munmap(place, length)
        return False

    def _fresh(self, length: int, beyond: int) -> int | None:
        """Memory that begins ``beyond`` bytes after a multiple of a huge page: alike ones are moved whole, not page by
        page."""
        flags, writable = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE
        found = self._libc.mmap(None, length + _HUGE, writable, flags, -1, 0)
        if found in (None, FAILED):
            return None
        place: int = found + (beyond - found) % _HUGE
        if place > found:
            self._libc.munmap(found, place - found)
        if found + _HUGE > place:
            self._libc.munmap(place + length, found + _HUGE - place)
        self._libc.madvise(place, length, _HUGEPAGE)  # only faster: no is no harm
        return place

    def _opened(self, number: int) -> int | None:
        """The file, mapped anew by the handle that all its maps will have; None where it cannot be read directly."""
        with self._lock:
            if number not in self._handles:
                if not _CAN or len(self._handles) >= _most_files():
                    return None
                try:
                    handle = os.open(self._paths[number], os.O_RDONLY | os.O_DIRECT)
                except OSError:  # no such thing on this file system, or too many open files
                    return None
                self._handles[number] = handle
                self._map(number, 0, int(self._starts[number + 1] - self._starts[number]))
            return self._handles[number]

    def _map(self, number: int, offset: int, length: int) -> None:
        place = self._base + int(self._starts[number]) + offset
        flags = mmap.MAP_SHARED | MAP_FIXED
        if self._libc.mmap(place, length, mmap.PROT_READ, flags, self._handles[number], offset) == FAILED:
            raise HotlapError(f"Cannot map {self._paths[number]}: {os.strerror(ctypes.get_errno())}.")


def _most_files() -> float:
    import resource  # not on Windows

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return float("inf") if limit == resource.RLIM_INFINITY else limit * _FILES_FRAC


def _close(handles: dict[int, int]) -> None:
    while handles:
        os.close(handles.popitem()[1])


def _read(handle: int, place: int, offset: int, length: int) -> bool:
    """Fill ``length`` bytes at ``place``; the file may end within the last page."""
    whole = os.fstat(handle).st_size - offset
    buffer = memoryview((ctypes.c_uint8 * length).from_address(place)).cast("B")
    done = 0
    while done < min(length, whole):
        try:
            count = os.preadv(handle, [buffer[done:]], offset + done)
        except OSError:
            return False
        if count == 0 or (count % mmap.PAGESIZE and done + count < whole):
            return False
        done += count
    return True
