"""A cache of bytes in files, shared by the training process and its loader workers, bounded, never half written."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
import threading
from typing import Any

__all__ = ["FileCache", "in_worker"]

_UNIT = 4096
"""Bytes that one byte of the usage file stands for (a page, what the smallest file costs on tmpfs)."""


def in_worker() -> bool:
    """Whether this process is a loader's worker."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


class FileCache:
    """Files named by a hash of their key, under ``folder``; outside loader workers, this process' own memory.

    Full means full: nothing is evicted, since under a random order each entry is as likely to be wanted as another and
    a pinned part beats a rolling one. Usage is counted across processes by the size of one append-only file, so that no
    lock is needed; concurrent writers may pass the bound by one entry each.
    """

    def __init__(self, folder: str, max_bytes: int) -> None:
        self._folder = folder
        self._usage = os.path.join(folder, "usage")
        self._max_units = max_bytes // _UNIT
        self._full = False
        self._own: dict[str, Any] = {}
        """What this process decoded outside a loader worker: no other process asks for it, so it needs no file."""
        os.makedirs(folder, mode=0o700, exist_ok=True)

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, hashlib.blake2b(key.encode(), digest_size=16).hexdigest())

    def get(self, key: str) -> bytearray | None:
        """A fresh copy of the bytes under ``key``, the caller's to keep and change."""
        own = self._own.get(key)
        if isinstance(own, bytes):
            return bytearray(own)
        try:
            with open(self._path(key), "rb", buffering=0) as file:
                data = bytearray(os.fstat(file.fileno()).st_size)
                return data if file.readinto(data) == len(data) else None
        except FileNotFoundError:
            return None

    def value(self, key: str) -> Any:
        """The value kept by :meth:`keep_value`, not to be changed, or None."""
        return self._own.get(key)

    def keep_value(self, key: str, value: Any, size: int) -> bool:
        """Keep a value of ``size`` bytes in this process, unless it is a loader worker or the cache is full."""
        units = size // _UNIT + 1
        if in_worker() or self._full or self.used_units() + units > self._max_units:
            return False
        return self._keep(key, value, units)

    def reserve(self, size: int) -> bool:
        """Count ``size`` bytes that are kept elsewhere; False when there is no room for them."""
        units = size // _UNIT + 1
        return self.used_units() + units <= self._max_units and self._count(units)

    def _keep(self, key: str, value: Any, units: int) -> bool:
        if self._count(units):
            self._own[key] = value
        return key in self._own

    def put(self, key: str, data: bytes) -> bool:
        """Store, unless the cache or its disk is full. Returns whether it was stored."""
        units = len(data) // _UNIT + 1
        if self._full or self.used_units() + units > self._max_units:
            self._full = True
            return False
        if not in_worker():
            return self._keep(key, data, units)
        path = self._path(key)
        temporary = f"{path}.{os.getpid()}.{threading.get_ident()}"
        try:
            with open(temporary, "wb", buffering=0) as file:
                written = file.write(data)
            if written != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), temporary)
            os.replace(temporary, path)
            self._count(units)
        except OSError as err:
            if err.errno not in (errno.ENOSPC, errno.EDQUOT, errno.ENOENT):
                raise
            self._full = True  # no room, or the folder is gone: read as before
            if os.path.exists(temporary):
                os.unlink(temporary)
            return False
        return True

    def _count(self, units: int) -> bool:
        try:
            with open(self._usage, "ab", buffering=0) as file:
                file.write(bytes(units))
        except OSError as err:
            if err.errno not in (errno.ENOSPC, errno.EDQUOT, errno.ENOENT):
                raise
            self._full = True  # no room, or the folder is gone: read as before
            return False
        return True

    def used_units(self) -> int:
        """Units of 4 KiB stored so far, by all processes."""
        try:
            return os.stat(self._usage).st_size
        except FileNotFoundError:
            return 0

    def used(self) -> bool:
        """Whether any process has stored anything."""
        return os.path.exists(self._usage)
