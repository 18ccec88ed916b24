"""MXNet RecordIO without MXNet: ``train.rec`` (records), ``train.idx`` (where each begins), as InsightFace ships them.

A record is the magic number, a word with its length (29 bits) and whether it was split (3 bits), and its bytes, padded
to four. An image's record begins with its labels; the rest is the image file.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap_workloads.errors import DataError

__all__ = ["MAGIC", "RecordFile", "packed_record", "read_index", "unpacked_record"]

MAGIC = 0xCED7230A
HEADER = struct.Struct("<IfQQ")
"""Number of labels when there is more than one (else 0), the label, and two numbers of the record."""


def read_index(path: Path) -> dict[int, int]:
    """Where each record begins, by its key, from ``.idx``: lines ``key offset``."""
    try:
        numbers = np.array(path.read_text(encoding="ascii").split(), np.int64)
    except OSError as err:
        raise DataError(path, f"cannot be read: {err.strerror}.", "It lies beside the .rec file.") from err
    except ValueError as err:
        raise DataError(path, f"is no index, which has lines `key offset`: {err}.") from err
    if len(numbers) == 0 or len(numbers) % 2:
        raise DataError(path, f"holds {len(numbers)} numbers, not lines `key offset`.", "It may be cut short.")
    if (numbers[1::2] < 0).any():
        raise DataError(path, f"says that a record begins at byte {numbers[1::2].min()}.")
    return dict(zip(numbers[::2].tolist(), numbers[1::2].tolist(), strict=True))


class RecordFile:
    """Records by where they begin. Each process opens the file for itself; reads do not move a shared position."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None
        self._process = 0

    def read(self, offset: int) -> bytes:
        """The bytes of a record, joined where it was split."""
        pieces = []
        while True:
            head = self._bytes(8, offset)
            magic, word = struct.unpack("<II", head) if len(head) == 8 else (0, 0)
            if magic != MAGIC:
                raise DataError(self.path, f"no record begins at byte {offset}.", "It is damaged or cut short.")
            kind, size = word >> 29, word & (1 << 29) - 1
            piece = self._bytes(size, offset + 8)
            if len(piece) < size:
                raise DataError(self.path, f"is cut short in the record at byte {offset}.", "Copy it again.")
            pieces.append(piece)
            if kind in (0, 3):  # whole, or the last piece
                return struct.pack("<I", MAGIC).join(pieces)  # it is split where its own bytes are the magic number
            offset += 8 + -(-size // 4) * 4

    def _bytes(self, size: int, offset: int) -> bytes:
        if self._file is None or self._process != os.getpid():
            try:
                self._file, self._process = os.open(self.path, os.O_RDONLY), os.getpid()
            except OSError as err:
                raise DataError(self.path, f"cannot be read: {err.strerror}.") from err
        return os.pread(self._file, size, offset)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_file": None, "_process": 0}

    def __del__(self) -> None:
        if self._file is not None and self._process == os.getpid():
            os.close(self._file)


def unpacked_record(record: bytes, where: object) -> tuple[int, NDArray[np.float32], bytes]:
    """(number of labels where it is told, labels, the image file)."""
    if len(record) < HEADER.size:
        raise DataError(where, f"has {len(record)} bytes, less than the header of an image's record.")
    flag, label, _, _ = HEADER.unpack_from(record)
    if flag == 0:
        return 0, np.array([label], np.float32), record[HEADER.size :]
    behind = HEADER.size + 4 * flag
    if len(record) < behind:
        raise DataError(where, f"says that it has {flag} labels, and ends before them.")
    return flag, np.frombuffer(record, "<f4", flag, HEADER.size), record[behind:]


def packed_record(labels: list[float], number: int, content: bytes) -> bytes:
    """A whole record as it lies in the file; several labels are told by their number. For data made here."""
    several = len(labels) > 1
    head = HEADER.pack(len(labels) if several else 0, 0.0 if several else labels[0], number, 0)
    body = head + (np.array(labels, "<f4").tobytes() if several else b"") + content
    if struct.pack("<I", MAGIC) in body:
        raise ValueError("the image holds the magic number; MXNet would split it, this writer does not")
    return struct.pack("<II", MAGIC, len(body)) + body + b"\0" * (-len(body) % 4)
