"""MXNet RecordIO as InsightFace ships it (``train.rec``, with ``train.idx`` beside it): a label and a JPEG a record."""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np

from hotlap.pack.sources.contract import BadRow
from hotlap.pack.sources.files import ImageReader, is_encoded
from hotlap.pack.sources.options import SourceOptions
from hotlap.pack.sources.read import stamp
from hotlap.records.errors import HotlapError

__all__ = ["RecordSource"]

_MAGIC = 0xCED7230A
_HEADER = struct.Struct("<IfQQ")
"""Of a packed image: flag (number of labels when more than one), label, id, second id."""

_PROBED = 1000
"""Records over the whole file that tell whether labels are whole numbers."""
_WITHOUT_INDEX = "Remove it: the records are found without."


class RecordSource:
    """Records by number. Record 0 of InsightFace's files tells where the identities lie; it is no sample."""

    may_fork = True

    def __init__(self, path: str, options: SourceOptions) -> None:
        self._path = path
        self.metadata: dict[str, Any] = {"source": path}
        self.ragged: frozenset[str] = frozenset()
        try:
            self._offsets = _offsets(path)
            self._keep_samples()
        except OSError as err:
            raise HotlapError(f"{path} cannot be read: {err.strerror or err}.") from err
        if not self._offsets:
            raise HotlapError(f"{path} holds no images.")
        encoded = is_encoded(options, lambda i: self._record(i)[1], len(self._offsets))
        self._image = ImageReader(encoded, options)
        self.metadata |= self._image.metadata
        self._are_whole = self._have_whole_labels()

    def _keep_samples(self) -> None:
        """Drop record 0 and the identity records it points to: they carry labels, no image."""
        flag, label, content = _parse(_read(self._path, self._offsets[0]))
        if flag > 0 and len(label) == 2 and not content:
            self._offsets = self._offsets[1 : int(label[0])]

    def _have_whole_labels(self) -> bool:
        """Whether each label is a class's number: a column has one type."""
        for index in range(0, len(self), max(1, len(self) // _PROBED)):
            try:
                label = _parse(_read(self._path, self._offsets[index]))[1]
            except BadRow:
                continue
            if len(label) == 1 and not _is_whole(label[0]):
                return False
        return True

    def __len__(self) -> int:
        return len(self._offsets)

    def name(self, index: int) -> str:
        return f"{self._path}@{self._offsets[index]}"

    def _record(self, index: int) -> tuple[np.ndarray[Any, Any], bytes]:
        _, label, content = _parse(_read(self._path, self._offsets[index]))
        if not content:
            raise BadRow(f"the record at byte {self._offsets[index]} holds no image")
        return label, content

    def row(self, index: int) -> dict[str, Any]:
        label, content = self._record(index)
        value: Any = label.astype(np.float32)
        if len(label) == 1 and self._are_whole and not _is_whole(label[0]):
            what = f"the record at byte {self._offsets[index]} has the label {label[0]}, others are whole numbers."
            raise BadRow(what, "If that is right, pack from files and a list (.txt), which keeps it.")
        if len(label) == 1:
            value = int(label[0]) if self._are_whole else value[0]
        return {**self._image(content), "label": value}

    def fingerprint(self) -> str:
        return f"recordio {self._path} {stamp(self._path)} {len(self)} {self._image.mark}"


def _offsets(path: str) -> list[int]:
    index = os.path.splitext(path)[0] + ".idx"
    if os.path.exists(index):
        try:
            with open(index, encoding="ascii") as lines:
                words = [line.split()[:2] for line in lines if line.strip()]
            pairs = sorted((int(number), int(at)) for number, at in words)
        except ValueError as err:
            raise HotlapError(f"{index} is no index of records: {err}.", _WITHOUT_INDEX) from err
        if not pairs:
            raise HotlapError(f"{index} is empty.", _WITHOUT_INDEX)
        size = os.path.getsize(path)
        for number, at in pairs:
            if not 0 <= at < size:
                raise HotlapError(f"{index}: record {number} is at byte {at} of a file of {size}.", _WITHOUT_INDEX)
        return [at for _, at in pairs]
    found, at, size = [], 0, os.path.getsize(path)
    with open(path, "rb") as file:
        while at + 8 <= size:
            file.seek(at)
            magic, length = struct.unpack("<II", file.read(8))
            if magic != _MAGIC:
                raise HotlapError(f"{path} is no RecordIO file: byte {at} does not begin a record.")
            if length >> 29 in (0, 1):  # whole, or the first piece of one that was split
                found.append(at)
            at += 8 + -(-(length & (1 << 29) - 1) // 4) * 4
    if not found:
        raise HotlapError(f"{path} holds no records.")
    return found


def _read(path: str, at: int) -> bytes:
    pieces = []
    with open(path, "rb") as file:
        file.seek(at)
        while True:
            head = file.read(8)
            if len(head) < 8 or struct.unpack("<I", head[:4])[0] != _MAGIC:
                raise BadRow(f"no record begins at byte {at}")
            length = struct.unpack("<I", head[4:])[0]
            kind, size = length >> 29, length & (1 << 29) - 1
            content = file.read(-(-size // 4) * 4)[:size]
            if len(content) != size:
                raise BadRow(f"the record at byte {at} is truncated")
            pieces.append(content)
            if kind in (0, 3):  # whole, or the last piece
                # a record is split where its data hold the magic number, which is left out
                return struct.pack("<I", _MAGIC).join(pieces)


def _is_whole(label: Any) -> bool:
    return bool(np.isfinite(label) and label == np.floor(label))


def _parse(record: bytes) -> tuple[int, np.ndarray[Any, Any], bytes]:
    if len(record) < _HEADER.size:
        raise BadRow(f"a record of {len(record)} bytes has no header")
    flag, label, _, _ = _HEADER.unpack_from(record)
    if flag == 0:
        return 0, np.array([label], np.float32), record[_HEADER.size :]
    behind = _HEADER.size + 4 * flag
    if len(record) < behind:
        raise BadRow(f"a record says that it has {flag} labels, and ends before")
    return flag, np.frombuffer(record, "<f4", flag, _HEADER.size), record[behind:]
