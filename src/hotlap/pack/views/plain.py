"""Columns as they are stored: whole rows, padded rows of varying length, encoded files and text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hotlap.pack.draws import Draws
from hotlap.pack.gather import as_torch, gather_rows, row_view
from hotlap.pack.reader import Indices, Pack
from hotlap.pack.schema import Column
from hotlap.pack.views.contract import Buffers, Filler
from hotlap.records.errors import HotlapError

__all__ = ["Flat", "Padded", "Whole"]


@dataclass(frozen=True)
class Whole:
    """Rows as they are: one tensor for fixed shapes, a list of ``bytes`` or ``str`` for files and text."""

    flip_share: float = 0.0

    def open(self, pack: Pack, name: str, batch: int) -> Filler:
        column = pack.column(name)
        if column.kind == "ragged":
            return Padded().open(pack, name, batch)
        return _Rows(pack, column, batch) if column.kind == "tensor" else _Files(pack, column)


class _Rows:
    def __init__(self, pack: Pack, column: Column, batch: int) -> None:
        self._pack, self._column, self._batch, self._view = pack, column, batch, row_view(pack, column.name)

    def allocate(self) -> Buffers:
        return {self._column.name: torch.empty((self._batch, *self._column.shape), dtype=as_torch(self._column.dtype))}

    def fill(self, buffers: Buffers, rows: Indices, draws: Draws, flipped: int) -> dict[str, Any]:
        name = self._column.name
        return {name: gather_rows(self._pack, name, rows, buffers[name][: len(rows)], self._view)}


class _Files:
    def __init__(self, pack: Pack, column: Column) -> None:
        self._pack, self._column = pack, column

    def allocate(self) -> Buffers:
        return {}

    def fill(self, buffers: Buffers, rows: Indices, draws: Draws, flipped: int) -> dict[str, Any]:
        name, bytes_of = self._column.name, self._pack.memory.array
        starts, lengths = self._pack.starts(name, rows).tolist(), self._pack.lengths(name, rows).tolist()
        found = [bytes_of[at : at + size].tobytes() for at, size in zip(starts, lengths, strict=True)]
        return {name: [b.decode() for b in found] if self._column.kind == "text" else found}


def pieces(pack: Pack, column: Column, rows: Indices) -> list[np.ndarray[Any, Any]]:
    """Each row's values, where they lie (not copied)."""
    dtype, unit, memory = np.dtype(column.dtype), column.unit_bytes, pack.memory.array
    starts, lengths = pack.starts(column.name, rows).tolist(), pack.lengths(column.name, rows).tolist()
    return [memory[at : at + n * unit].view(dtype).reshape(n, *column.shape)
            for at, n in zip(starts, lengths, strict=True)]  # fmt: skip


@dataclass(frozen=True)
class Padded:
    """Rows of varying length as one tensor, short ones filled with ``value``; ``<name>_length`` tells each length."""

    value: float = 0.0
    flip_share: float = 0.0

    def open(self, pack: Pack, name: str, batch: int) -> Filler:
        return _Padded(pack, _ragged(pack, name), self.value)


class _Padded:
    def __init__(self, pack: Pack, column: Column, value: float) -> None:
        self._pack, self._column, self._value = pack, column, value

    def allocate(self) -> Buffers:
        return {}

    def fill(self, buffers: Buffers, rows: Indices, draws: Draws, flipped: int) -> dict[str, Any]:
        name = self._column.name
        lengths = self._pack.lengths(name, rows)
        shape = (len(rows), int(lengths.max(initial=0)), *self._column.shape)
        out = np.full(shape, self._value, self._column.dtype)
        for target, piece in zip(out, pieces(self._pack, self._column, rows), strict=True):
            target[: len(piece)] = piece
        return {name: torch.from_numpy(out), f"{name}_length": torch.from_numpy(lengths.copy())}


@dataclass(frozen=True)
class Flat:
    """Rows of varying length one behind the other; ``<name>_length`` tells how long each is (boxes, graphs)."""

    flip_share: float = 0.0

    def open(self, pack: Pack, name: str, batch: int) -> Filler:
        return _Flat(pack, _ragged(pack, name))


class _Flat:
    def __init__(self, pack: Pack, column: Column) -> None:
        self._pack, self._column = pack, column

    def allocate(self) -> Buffers:
        return {}

    def fill(self, buffers: Buffers, rows: Indices, draws: Draws, flipped: int) -> dict[str, Any]:
        name = self._column.name
        flat = np.concatenate(pieces(self._pack, self._column, rows))
        lengths = torch.from_numpy(self._pack.lengths(name, rows).copy())
        return {name: torch.from_numpy(flat), f"{name}_length": lengths}


def _ragged(pack: Pack, name: str) -> Column:
    column = pack.column(name)
    if column.kind != "ragged":
        raise HotlapError(f"Column {name!r} is {column.kind}; only columns of varying length can be read that way.")
    return column
