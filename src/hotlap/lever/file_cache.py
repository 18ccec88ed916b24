"""A cache of bytes in files, shared by the training process and its loader workers, bounded, never half written."""

from __future__ import annotations

import collections
import contextlib
import errno
import hashlib
import io
import os
import sys
import threading
from typing import Any

from hotlap.lever.usage import Usage, leaves_room, units_of

__all__ = ["FileCache", "in_worker"]

USAGE = "caches.usage"
"""Beside the caches' folders: what they keep counts together, since each may have been promised the same memory."""


def in_worker() -> bool:
    """Whether this process is a loader's worker."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


class FileCache:
    """Files named by a hash of their key, under ``folder``; outside loader workers, this process' own memory.

    Full means full: nothing is evicted, since under a random order each entry is as likely to be wanted as another and
    a pinned part beats a rolling one. Usage is counted across processes, and across the caches of one scratch folder.
    """

    def __init__(self, folder: str, max_bytes: int) -> None:
        self._folder = folder
        self._usage = Usage(os.path.join(os.path.dirname(folder), USAGE), max_bytes)
        self._mark = os.path.join(folder, "used")
        self._marked = self._full = False
        self._own: dict[str, Any] = {}
        """What this process decoded outside a loader worker: no other process asks for it, so it needs no file."""
        self._own_units: collections.Counter[str] = collections.Counter()
        """By the beginning of their keys."""
        self._pid = os.getpid()
        os.makedirs(folder, mode=0o700, exist_ok=True)

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, f"{_hash(_owner(key))}.{_hash(key)}")

    def forget(self, owner: str) -> None:
        """Drop all whose keys begin with ``owner`` and a bar: two words with a bar between."""
        for key in [key for key in self._own if _owner(key) == owner]:
            self._own.pop(key, None)
        units = self._own_units.pop(owner, 0) if self._pid == os.getpid() else 0  # a worker has copies
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.startswith(f"{_hash(owner)}."):
                    with contextlib.suppress(FileNotFoundError):
                        size = entry.stat().st_size
                        os.unlink(entry.path)
                        units += units_of(size)
        self._give_back(units)

    def release(self, size: int) -> None:
        """What was reserved in this process is kept no more."""
        if self._pid == os.getpid():
            self._give_back(units_of(size))

    def _give_back(self, units: int) -> None:
        self._usage.give_back(units)
        self._full = False

    def get(self, key: str) -> bytearray | None:
        """A fresh copy of the bytes under ``key``, the caller's to keep and change."""
        own = self._own.get(key)
        if isinstance(own, bytes):
            return bytearray(own)
        try:
            with io.FileIO(self._path(key)) as file:  # no file that a sample is made of, as what ``open`` opens may be
                data = bytearray(os.fstat(file.fileno()).st_size)
                return data if file.readinto(data) == len(data) else None
        except FileNotFoundError:
            return None

    def value(self, key: str) -> Any:
        """The value kept by :meth:`keep_value`, not to be changed, or None."""
        return self._own.get(key)

    def keep_value(self, key: str, value: Any, size: int) -> bool:
        """Keep a value of ``size`` bytes in this process, unless it is a loader worker or the cache is full."""
        return not (in_worker() or self._full) and self._usage.fits(size) and self._keep(key, value, size)

    def reserve(self, size: int) -> bool:
        """Count ``size`` bytes that are kept elsewhere; False when there is no room for them."""
        return self._usage.fits(size) and self._count(size)

    def _keep(self, key: str, value: Any, size: int) -> bool:
        if self._count(size):
            self._own[key] = value
            self._own_units[_owner(key)] += units_of(size)
        return key in self._own

    def put(self, key: str, data: bytes) -> bool:
        """Store, unless the cache or its disk is full. Returns whether it was stored."""
        worker = in_worker()
        if self._full or not self._usage.fits(len(data)) or (worker and not leaves_room(self._folder, len(data))):
            self._full = True
            return False
        if not worker:
            return self._keep(key, data, len(data))
        path = self._path(key)
        temporary = f"{path}.{os.getpid()}.{threading.get_ident()}"
        try:
            with open(temporary, "wb", buffering=0) as file:
                written = file.write(data)
            if written != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), temporary)
            os.replace(temporary, path)
            self._count(len(data))
        except OSError as err:
            if err.errno not in (errno.ENOSPC, errno.EDQUOT, errno.ENOENT):
                raise
            self._full = True  # no room, or the folder is gone: read as before
            if os.path.exists(temporary):
                os.unlink(temporary)
            return False
        return True

    def _count(self, size: int) -> bool:
        if not self._marked:
            try:
                with open(self._mark, "ab"):
                    self._marked = True
            except OSError as err:
                if err.errno not in (errno.ENOSPC, errno.EDQUOT, errno.ENOENT):
                    raise
        counted = self._marked and self._usage.count(size)
        if not counted:
            self._full = True  # no room, or the folder is gone: read as before
        return counted

    def used_units(self) -> int:
        """Units of 4 KiB stored so far, by all processes and caches."""
        return self._usage.units()

    def used(self) -> bool:
        """Whether any process has stored anything."""
        return os.path.exists(self._mark)


def _owner(key: str) -> str:
    return "|".join(key.split("|", 2)[:2])


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
