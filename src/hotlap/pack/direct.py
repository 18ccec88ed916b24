"""Files read past the page cache, into memory of ours.

A pack that memory does not hold drives the page cache against its limit: the kernel copies every byte, keeps what was
used and drops what was read ahead. ``O_DIRECT`` reads as fast as the disk gives, into huge pages without a copy, and
holds what is asked for alone.
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

__all__ = ["Direct"]

_CAN = sys.platform == "linux"
_FILES_FRAC = 0.25
"""Of the files that the process may have open, the share that a pack takes at most: the rest is the training's."""


class Direct:
    """Reads what lies from ``starts[i]`` on, if all files lay one behind the other, each from a page's beginning.

    A file stays open from its first bytes on.
    """

    def __init__(self, starts: np.ndarray[Any, np.dtype[np.int64]], paths: Sequence[Path]) -> None:
        self._starts, self._paths = starts, list(paths)
        self._handles: dict[int, int] = {}
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._handles)

    def read(self, start: int, size: int, address: int) -> bool:
        """Fill memory at ``address`` with this range; all three in whole pages.

        False where the file system or the machine cannot: what is there then is of no use.
        """
        pieces = self._pieces(start, size)
        return all(self._read(number, offset, length, address + at) for at, number, offset, length in pieces)

    def close(self) -> None:
        """Close the files; what is read next opens them again."""
        with self._lock:
            _close(self._handles)

    def after_fork(self) -> None:
        """In a child: a lock that nobody holds."""
        self._lock = threading.Lock()

    def _pieces(self, start: int, size: int) -> list[tuple[int, int, int, int]]:
        """(bytes into the range, file, offset, bytes) of the files that it goes over."""
        found, at, behind = [], start, start + size
        number = int(np.searchsorted(self._starts, start, "right")) - 1
        while at < behind:
            first, end = int(self._starts[number]), int(self._starts[number + 1])
            if end > at:  # not an empty file
                found.append((at - start, number, at - first, min(behind, end) - at))
            at, number = max(at, end), number + 1
        return found

    def _read(self, number: int, offset: int, length: int, address: int) -> bool:
        """The file may end within the last page."""
        handle = self._opened(number)
        if handle is None:
            return False
        whole = os.fstat(handle).st_size - offset
        buffer = memoryview((ctypes.c_uint8 * length).from_address(address)).cast("B")
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

    def _opened(self, number: int) -> int | None:
        """None where the file cannot be read directly."""
        with self._lock:
            if number not in self._handles:
                if not _CAN or len(self._handles) >= _most_files():
                    return None
                try:
                    self._handles[number] = os.open(self._paths[number], os.O_RDONLY | os.O_DIRECT)
                except OSError:  # no such thing on this file system, or too many open files
                    return None
            return self._handles[number]


def _most_files() -> float:
    import resource  # not on Windows

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return float("inf") if limit == resource.RLIM_INFINITY else limit * _FILES_FRAC


def _close(handles: dict[int, int]) -> None:
    while handles:
        os.close(handles.popitem()[1])
