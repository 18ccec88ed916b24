"""All parts of a pack as one run of memory: an index anywhere in the pack is one number.

A gather by address needs one base pointer. So a range of addresses as long as all parts is reserved, and each file is
mapped into its place (MAP_FIXED), read-only, shared with everybody who reads the same files. Nothing is copied.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from hotlap.pack.libc import FAILED, MAP_FIXED, libc
from hotlap.records.errors import HotlapError

__all__ = ["Memory"]

_WILLNEED = 3
_DONTNEED = 4
_COLD = 20


class Memory:
    """Files mapped one behind the other. ``starts[i]`` is where file ``i`` begins, on a page boundary.

    ``spare_bytes``: addresses behind them, which :attr:`tensor` reaches as well. Nothing is there until it is mapped.
    """

    def __init__(self, files: Sequence[tuple[Path, int]], spare_bytes: int = 0) -> None:
        page = mmap.PAGESIZE
        spans = [-(-size // page) * page for _, size in files]
        self.starts = np.concatenate([[0], np.cumsum(spans)]).astype(np.int64)
        self.size_bytes = int(self.starts[-1])
        self._libc = lib = libc()
        anonymous = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        reserved = max(self.size_bytes + spare_bytes, page)
        self._base = lib.mmap(None, reserved, 0, anonymous, -1, 0)
        if self._base in (None, FAILED):
            raise HotlapError(f"Cannot reserve {reserved} bytes of addresses: {os.strerror(ctypes.get_errno())}.")
        self._release = weakref.finalize(self, lib.munmap, self._base, reserved)
        for (path, size), start in zip(files, self.starts, strict=False):
            self._map(path, size, int(start))
        raw = (ctypes.c_uint8 * max(self.size_bytes + spare_bytes, 1)).from_address(self._base)
        self.tensor = torch.frombuffer(raw, dtype=torch.uint8)
        """Every byte as one flat tensor. Memory is read-only: writing into it ends the process."""
        self.array = self.tensor.numpy()
        self.spare = self._base + self.size_bytes, self._base + self.size_bytes + spare_bytes
        """First address of the spare ones, and the one behind the last."""

    def _map(self, path: Path, size: int, start: int) -> None:
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError as err:
            raise HotlapError(f"Cannot read {path}: {err.strerror}.", "The pack is not whole; copy it again.") from err
        try:
            found = os.fstat(handle).st_size
            if found != size:
                raise HotlapError(
                    f"{path} has {found} bytes, its manifest says {size}.",
                    "The pack is damaged; copy or pack it again.",
                )
            flags = mmap.MAP_SHARED | MAP_FIXED
            if size and self._libc.mmap(self._base + start, size, mmap.PROT_READ, flags, handle, 0) == FAILED:
                raise HotlapError(f"Cannot map {path}: {os.strerror(ctypes.get_errno())}.")
        finally:
            os.close(handle)

    def will_need(self, start: int, size: int) -> None:
        """Ask the kernel to read this range soon; returns at once."""
        page = mmap.PAGESIZE
        first = start // page * page
        self._libc.madvise(self._base + first, start + size - first, _WILLNEED)

    def touch(self, start: int, size: int) -> None:
        """Wait until this range is in memory, and mapped."""
        self.array[start : start + size : mmap.PAGESIZE].max(initial=0)

    def let_go(self, start: int, size: int) -> None:
        """Unmap whole pages of this range, so that the kernel drops them first; read again, they are mapped again."""
        page = mmap.PAGESIZE
        first, behind = -(-start // page) * page, (start + size) // page * page
        if behind > first:
            for advice in (_COLD, _DONTNEED):
                self._libc.madvise(self._base + first, behind - first, advice)

    def close(self) -> None:
        """Unmap. Nothing taken from ``tensor`` or ``array`` may be used afterwards."""
        self._release()
