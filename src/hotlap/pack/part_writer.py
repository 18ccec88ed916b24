"""One part of a pack: rows in, an Arrow file with checksums out, under its own name only when it is whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from hotlap.pack.arrow import arrow_schema, column_starts, pyarrow, record_batch
from hotlap.pack.checksum import crc32
from hotlap.pack.manifest import Chunk, Part
from hotlap.pack.schema import Column, to_row
from hotlap.records.errors import HotlapError

__all__ = ["CHUNK_BYTES", "PartWriter"]

CHUNK_BYTES = 2 << 20
"""Target size of a chunk: small enough that the first batch of a shuffled epoch checks its 128 chunks in 0.1 s."""


class PartWriter:
    """Writes ``folder/name``; used as a context: an error leaves nothing behind."""

    def __init__(self, folder: Path, name: str, columns: Sequence[Column], chunk_bytes: int = CHUNK_BYTES) -> None:
        self.columns = tuple(columns)
        self._path = folder / name
        self._temporary = folder / f".{name}.{os.getpid()}.tmp"
        self._chunk_bytes = chunk_bytes
        self._schema = arrow_schema(self.columns)
        self._lengths: list[list[int]] = [[] for c in self.columns if c.kind != "tensor"]
        self._pending: list[list[Any]] = [[] for _ in self.columns]
        self._pending_bytes = 0
        self._ranges: list[tuple[int, int, int]] = []
        pa = pyarrow()
        self._sink = pa.OSFile(str(self._temporary), "wb")
        self._file = pa.ipc.new_file(self._sink, self._schema)

    def fit(self, row: dict[str, Any]) -> list[Any]:
        """A row as its columns store it; HotlapError where a value is missing, unknown or does not fit."""
        if set(row) != {c.name for c in self.columns}:
            raise HotlapError(f"The row has columns {sorted(row)}, the pack {sorted(c.name for c in self.columns)}.")
        return [to_row(c, row[c.name]) for c in self.columns]

    def add(self, values: list[Any]) -> None:
        """Write one row that :meth:`fit` made."""
        for pending, value in zip(self._pending, values, strict=True):
            pending.append(value)
            self._pending_bytes += len(value) if isinstance(value, bytes) else value.nbytes
        varying = (v for c, v in zip(self.columns, values, strict=True) if c.kind != "tensor")
        for lengths, value in zip(self._lengths, varying, strict=True):
            lengths.append(len(value))
        if self._pending_bytes >= self._chunk_bytes:
            self._write_chunk()

    def _write_chunk(self) -> None:
        rows = len(self._pending[0])
        if rows == 0:
            return
        start = self._sink.tell()
        self._file.write_batch(record_batch(self._schema, self.columns, self._pending))
        self._ranges.append((start, self._sink.tell(), rows))
        self._pending = [[] for _ in self.columns]
        self._pending_bytes = 0

    def finish(self) -> Part:
        """Close, bring to the disk, rename; returns the part's table."""
        self._write_chunk()
        self._file.close()
        self._sink.close()
        starts = column_starts(self._temporary, self.columns)
        chunks, frame = [], 0
        with open(self._temporary, "rb") as written:
            for (start, end, rows), data in zip(self._ranges, starts, strict=True):
                frame = crc32(written.read(start - written.tell()), frame)
                crc = crc32(written.read(end - start))
                chunks.append(Chunk(start, end, rows, crc, {k: v if v >= 0 else start for k, v in data.items()}))
            frame = crc32(written.read(), frame)
            size = written.tell()
            os.fsync(written.fileno())
        lengths = np.array(self._lengths, "<i8").tobytes()
        total = sum(c.rows for c in chunks)
        part = Part(self._path.name, size, total, frame, crc32(lengths), chunks)
        self._write_lengths(self._path.with_name(part.lengths_file), lengths)
        os.replace(self._temporary, self._path)
        return part

    def _write_lengths(self, path: Path, lengths: bytes) -> None:
        if not self._lengths:
            return
        with open(self._temporary.with_suffix(".lengths.tmp"), "wb") as out:
            out.write(lengths)
            out.flush()
            os.fsync(out.fileno())
        os.replace(out.name, path)

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            # what could not be written a moment ago cannot be flushed either (disk full), and finish() may have closed
            # them before Ctrl-C came (of Arrow a ValueError): the first error counts
            for closing in (self._file, self._sink):
                try:
                    closing.close()
                except (OSError, ValueError):
                    continue
            self._temporary.unlink(missing_ok=True)
            self._temporary.with_suffix(".lengths.tmp").unlink(missing_ok=True)
