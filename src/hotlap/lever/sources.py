"""What a reader is handed, and what tells its content apart: a path, an open file, or bytes in memory."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import sys
from typing import Any

from hotlap.lever.opened_files import note_opened

__all__ = ["bytes_key", "file_key", "seek", "stream_key", "tell"]


def file_key(path: Any) -> str | None:
    """What identifies a file's content (device, inode, modification time, size); None for what is no existing file."""
    if not isinstance(path, str | os.PathLike):
        return None
    name = os.fspath(path)
    if not isinstance(name, str):
        return None
    note_opened(name)
    try:
        return _facts(os.stat(name))
    except (OSError, ValueError):
        return None  # the reader itself says what is wrong


def stream_key(stream: Any) -> str | None:
    """The same of a regular file that is open for reading (``open(path, "rb")``), and of a ``BytesIO`` by a hash of all
    that it holds; None of any other object, which may give other bytes each time."""
    try:
        if type(stream) is io.BytesIO:
            with stream.getbuffer() as data:
                return _digest(data)
        if type(stream) is io.BufferedReader and type(stream.raw) is io.FileIO:
            facts = os.fstat(stream.fileno())
            return _facts(facts) if stat.S_ISREG(facts.st_mode) else None
    except (OSError, ValueError):
        return None  # closed: the reader itself says so
    return None


def bytes_key(data: Any) -> str | None:
    """A hash of encoded bytes: ``bytes``, ``bytearray``, or a flat array of numpy's; None of anything else."""
    if type(data) in (bytes, bytearray):
        return _digest(data)
    numpy = sys.modules.get("numpy")
    if numpy is None or type(data) is not numpy.ndarray or data.dtype != numpy.uint8 or data.ndim != 1:
        return None
    return _digest(data) if data.flags.c_contiguous and len(data) else None


def tell(stream: Any) -> int:
    """Where a stream stands; -1 if it is closed, or none of Python's own."""
    return -1 if getattr(stream, "closed", True) else int(stream.tell())


def seek(stream: Any, position: int) -> None:
    """Put a stream to where :func:`tell` saw it."""
    if position >= 0:
        stream.seek(position)


def _facts(facts: os.stat_result) -> str:
    return f"{facts.st_dev}|{facts.st_ino}|{facts.st_mtime_ns}|{facts.st_size}"


def _digest(data: Any) -> str:
    return f"{hashlib.blake2b(data, digest_size=16).hexdigest()}|{len(data)}"
