"""``Pack``: a pack opened for reading. Where each row lies, and that what lies there is what was written.

A chunk's checksum is computed the first time one of its rows is asked for: a flipped byte is named, never served.
Later reads of the chunk cost nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from hotlap.pack.checksum import crc32
from hotlap.pack.manifest import Manifest, read_manifest
from hotlap.pack.memory import Memory
from hotlap.pack.schema import Column
from hotlap.records.errors import HotlapError

__all__ = ["Indices", "Pack"]

Indices = np.ndarray[Any, np.dtype[np.int64]]


class Pack:
    """Rows ``0 … len-1`` of a packed data set. Cheap to open, safe to read from several threads.

    ``check=False`` leaves the checksums to ``hotlap pack verify``.
    """

    def __init__(self, folder: str | Path, check: bool = True) -> None:
        self.folder = Path(folder)
        self.manifest: Manifest = read_manifest(self.folder)
        self.columns = {c.name: c for c in self.manifest.columns}
        parts = self.manifest.parts
        self.memory = Memory([(self.folder / p.file, p.size_bytes) for p in parts])
        chunks = [(int(base), c) for base, p in zip(self.memory.starts, parts, strict=False) for c in p.chunks]
        self._names = [p.file for p in parts for _ in p.chunks]
        self._chunks = [c for _, c in chunks]
        self._bases = np.array([base for base, _ in chunks], np.int64)
        rows = np.array([c.rows for _, c in chunks], np.int64)
        self.chunk_rows: Indices = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
        """First row of each chunk, and the number of rows at the end."""
        self._data = {name: np.array([base + c.data[name] for base, c in chunks], np.int64) for name in self.columns}
        self._trusted = np.full(len(chunks), not check)
        self._all_trusted = not check
        self._lengths = self._read_lengths()

    def __len__(self) -> int:
        return int(self.chunk_rows[-1])

    @property
    def metadata(self) -> dict[str, Any]:
        """What the source knew: class names, settings."""
        return self.manifest.metadata

    def column(self, name: str) -> Column:
        """The column, or an error that lists those there are."""
        if name not in self.columns:
            raise HotlapError(f"{self.folder} has no column {name!r}.", f"It has: {', '.join(self.columns)}.")
        return self.columns[name]

    def _read_lengths(self) -> dict[str, tuple[Indices, Indices]]:
        """Per varying column: length and first byte of every row."""
        varying = [c for c in self.manifest.columns if c.kind != "tensor"]
        if not varying:
            return {}
        runs: list[list[Indices]] = [[] for _ in varying]
        for part in self.manifest.parts:
            path = self.folder / part.lengths_file
            try:
                found = path.read_bytes()
            except OSError as err:
                raise HotlapError(f"Cannot read {path}: {err.strerror}.", "The pack is not whole.") from err
            if crc32(found) != part.lengths_crc:
                raise HotlapError(f"{path} is damaged: its checksum does not match.", "Copy or pack it again.")
            if len(found) != 8 * part.rows * len(varying):
                raise HotlapError(f"{path} has {len(found)} bytes, which is not {part.rows} rows.")
            for run, lengths in zip(runs, np.frombuffer(found, "<i8").reshape(len(varying), -1), strict=True):
                run.append(lengths)
        table = {}
        for column, run in zip(varying, runs, strict=True):
            lengths = np.concatenate([*run, np.empty(0, np.int64)])
            before = np.concatenate([[0], np.cumsum(lengths)]) * column.unit_bytes
            chunk = np.repeat(np.arange(len(self._chunks)), np.diff(self.chunk_rows))
            starts = self._data[column.name][chunk] + before[:-1] - before[self.chunk_rows[chunk]]
            ends = self._bases + np.array([c.end for c in self._chunks], np.int64)
            if len(lengths) and (lengths.min() < 0 or (starts + lengths * column.unit_bytes > ends[chunk]).any()):
                raise HotlapError(f"{self.folder} is damaged: rows of {column.name!r} end outside their chunk.")
            table[column.name] = (lengths, starts)
        return table

    def numbers(self, indices: Any) -> Indices:
        """Checked row numbers, negative ones counted from the end."""
        rows = np.asarray(indices, np.int64).reshape(-1)
        size = len(self)
        if rows.size and (rows.min() < -size or rows.max() >= size):
            beyond = int(rows[(rows < -size) | (rows >= size)][0])
            raise IndexError(f"row {beyond} of a pack with {size} rows ({self.folder})")
        rows = np.where(rows < 0, rows + size, rows)
        return rows

    def rows(self, indices: Any) -> Indices:
        """Checked row numbers (negative ones count from the end), their chunks trusted from now on."""
        rows = self.numbers(indices)
        if not self._all_trusted:
            self.trust(self.chunks_of(rows))
        return rows

    def chunk_number(self, rows: Indices) -> Indices:
        """The chunk that each row lies in."""
        return np.searchsorted(self.chunk_rows, rows, "right") - 1

    def chunks_of(self, rows: Indices) -> Indices:
        """The chunks that hold these rows, each once."""
        return np.unique(self.chunk_number(rows))

    def chunk_range(self, number: int) -> tuple[int, int]:
        """(first byte in :attr:`memory`, bytes) of a chunk."""
        chunk = self._chunks[number]
        return int(self._bases[number]) + chunk.start, chunk.end - chunk.start

    def trusted(self, chunks: Indices) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether the checksum of each of these chunks has been found right."""
        return self._trusted[chunks]

    def trust(self, chunks: Indices, moved: int = 0) -> None:
        """Compare the checksums of those of these chunks that have not been compared yet.

        ``moved``: by how many bytes they lie elsewhere in :attr:`memory`.
        """
        for number in chunks[~self._trusted[chunks]]:
            self.check_chunk(int(number), moved)
            self._trusted[number] = True
        if not self._all_trusted and self._trusted.all():
            self._all_trusted = True

    def check_chunk(self, number: int, moved: int = 0) -> None:
        """Compare a chunk with its checksum; HotlapError names file and rows where they differ."""
        chunk, base = self._chunks[number], int(self._bases[number]) + moved
        if crc32(self.memory.array[base + chunk.start : base + chunk.end].data) != chunk.crc:
            first = int(self.chunk_rows[number])
            raise HotlapError(
                f"{self.folder / self._names[number]} is damaged between bytes {chunk.start} and {chunk.end} "
                f"(rows {first} to {first + chunk.rows - 1}): the checksum does not match.",
                "Copy or pack it again.",
            )

    def starts(self, name: str, rows: Indices) -> Indices:
        """First byte of each row of a column, in :attr:`memory`."""
        column = self.column(name)
        if column.kind != "tensor":
            return self._lengths[name][1][rows]
        chunk = self.chunk_number(rows)
        found: Indices = self._data[name][chunk] + (rows - self.chunk_rows[chunk]) * column.unit_bytes
        return found

    def lengths(self, name: str, rows: Indices | None = None) -> Indices:
        """Entries along the leading dimension (bytes of an encoded file) of each row, or of all."""
        if self.column(name).kind == "tensor":
            raise HotlapError(f"Column {name!r} has rows of one shape; only others have lengths.")
        lengths = self._lengths[name][0]
        return lengths if rows is None else lengths[rows]

    def values(self, name: str) -> np.ndarray[Any, Any]:
        """All rows of a small fixed column (labels) as one array."""
        from hotlap.pack.gather import gather_rows

        kind = self.column(name).kind
        if kind != "tensor":
            hint = "Use texts()." if kind in ("text", "bytes") else "Read it with Loader: Padded, Flat or Clip."
            raise HotlapError(f"Column {name!r} of {self.folder} is {kind}; values() is for rows of one shape.", hint)
        return gather_rows(self, name, self.rows(np.arange(len(self)))).numpy()

    def texts(self, name: str) -> list[str] | list[bytes]:
        """All rows of a column of texts (names), or of bytes."""
        kind = self.column(name).kind
        if kind not in ("text", "bytes"):
            raise HotlapError(f"Column {name!r} of {self.folder} is {kind}; texts() is for text and bytes.",
                              "Use values(), or a Loader.")  # fmt: skip
        rows = self.rows(np.arange(len(self)))
        starts, memory = self.starts(name, rows), self.memory.array
        ends = (starts + self.lengths(name, rows)).tolist()
        found = [memory[start:end].tobytes() for start, end in zip(starts.tolist(), ends, strict=True)]
        return [self._text(name, raw) for raw in found] if kind == "text" else found

    def row(self, index: int) -> dict[str, Any]:
        """One row as stored: tensors, bytes, text."""
        rows = self.rows([index])
        return {name: self._one(column, rows) for name, column in self.columns.items()}

    def _text(self, name: str, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as err:
            raise HotlapError(f"{self.folder} is damaged: column {name!r} holds what is no text.") from err

    def _one(self, column: Column, rows: Indices) -> Any:
        start = int(self.starts(column.name, rows)[0])
        size = column.unit_bytes
        if column.kind != "tensor":
            length = int(self.lengths(column.name, rows)[0])
            raw = self.memory.array[start : start + length * size].tobytes()
            if column.kind == "text":
                return self._text(column.name, raw)
            if column.kind == "bytes":
                return raw
            return torch.from_numpy(np.frombuffer(raw, column.dtype).reshape(length, *column.shape).copy())
        raw = self.memory.array[start : start + size].tobytes()
        return torch.from_numpy(np.frombuffer(raw, column.dtype).reshape(column.shape).copy())
