"""Files that stay open for reading and have no place that a call moves: HDF5, LMDB, zips, read-only memory maps."""

from __future__ import annotations

import os
import stat
import sys
from typing import Any

__all__ = ["descriptor_name", "file_name", "is_of", "is_open_file", "stream_stamp"]

_HIGHEST = 1 << 16
"""Of the numbers that may be descriptors."""


def is_open_file(value: Any) -> bool:
    """Whether it is one. One that is closed counts: it has to be opened before anything is read."""
    try:
        if is_of(value, "h5py", "Group", "Dataset"):
            return not value or value.file.mode == "r"
        if is_of(value, "zipfile", "ZipFile"):
            return value.fp is None or value.mode == "r"
        if is_of(value, "numpy", "memmap"):
            return not value.flags.writeable
        if is_of(value, "lmdb", "Environment"):
            return bool(value.flags()["readonly"])
    except Exception:  # closed: it has to be opened again before anything is read
        return True
    return False


def file_name(value: Any) -> str | None:
    """The same in every process that has the same file open, and for no other file; None where that cannot be told."""
    try:
        if is_of(value, "h5py", "Group", "Dataset"):
            return f"{_stamp(value.file.filename)}|{value.name}"
        if is_of(value, "zipfile", "ZipFile"):
            return _stamp(value.filename)
        if is_of(value, "numpy", "memmap"):
            return f"{_stamp(value.filename)}|{value.offset}|{value.shape}|{value.strides}|{value.dtype.str}"
        if is_of(value, "lmdb", "Environment"):
            path = value.path()
            return _stamp(os.path.join(path, "data.mdb") if os.path.isdir(path) else path)
    except Exception:  # closed, or without a file
        return None
    return None


def descriptor_name(number: int) -> str | None:
    """Of a file's descriptor, the file; None for any other number."""
    if not 2 < number < _HIGHEST:
        return None
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return f"{found.st_dev}|{found.st_ino}" if stat.S_ISREG(found.st_mode) else None


def stream_stamp(stream: Any) -> str | None:
    """What tells the content of a file that Python has open to be read from what it was; None of any other."""
    try:
        return _facts(os.fstat(stream.fileno())) if stream.readable() else None
    except (OSError, ValueError):
        return None


def _stamp(path: Any) -> str:
    return _facts(os.stat(path))


def _facts(found: os.stat_result) -> str:
    return f"{found.st_dev}|{found.st_ino}|{found.st_mtime_ns}|{found.st_size}"


def is_of(value: Any, module: str, *names: str) -> bool:
    """Whether it is of one of these classes. Nothing is imported."""
    found = sys.modules.get(module)
    kinds = tuple(kind for name in names if isinstance(kind := getattr(found, name, None), type))
    return isinstance(value, kinds)
