"""Photos on a storage that is slow on purpose: what a training does once the page cache no longer holds its data."""

from __future__ import annotations

import os
import time
from multiprocessing import Value
from pathlib import Path

from hotlap_workloads.errors import DataError
from hotlap_workloads.face_distill.photos import Photos

__all__ = ["SlowPhotos"]

BLOCK = 1 << 16
"""Bytes of one read past the page cache."""


class SlowPhotos:
    """Other photos; after ``cached_bytes`` of them were read, the storage is busy for ``busy_s`` with each.

    It is kept busy by reading the photo's file past the page cache (Linux), so that the bytes do come from the device,
    and it serves one loading process at a time, as a disk does.
    """

    def __init__(self, photos: Photos, cached_bytes: int, busy_s: float) -> None:
        self._photos, self._busy_s = photos, busy_s
        self.identities = photos.identities
        self._left = Value("q", cached_bytes)

    def __len__(self) -> int:
        return len(self._photos)

    def name(self, row: int) -> Path:
        return self._photos.name(row)

    def read(self, row: int) -> tuple[bytes, int]:
        with self._left.get_lock():
            if self._left.value <= 0:
                _read_past_cache(getattr(self._photos, "path", None) or self.name(row), self._busy_s)
            content, label = self._photos.read(row)
            self._left.value -= len(content)
        return content, label

    def fingerprint(self) -> str:
        return self._photos.fingerprint()


def _read_past_cache(file: Path, seconds: float) -> None:
    """Read the file from the device, from its beginning again and again, for so long."""
    try:
        disk = os.open(file, os.O_RDONLY)
    except OSError as err:
        raise DataError(file, f"cannot be read: {err.strerror}.") from err
    try:
        until, offset = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            os.posix_fadvise(disk, 0, 0, os.POSIX_FADV_DONTNEED)
            offset = offset + BLOCK if os.pread(disk, BLOCK, offset) else 0
    finally:
        os.close(disk)
