"""Audio: a stretch of every recording, the same length for all, copied in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hotlap.pack import fused, kernel
from hotlap.pack.draws import Draws
from hotlap.pack.gather import as_torch, gather_windows, window_view
from hotlap.pack.reader import Indices, Pack
from hotlap.pack.views.contract import Buffers, Filler
from hotlap.pack.views.plain import pieces
from hotlap.records.errors import HotlapError

__all__ = ["Clip"]

_BLOCK = 1 << 17
"""Entries converted at once: 256 KB of int16 and 512 KB of floats, which a second-level cache holds."""


@dataclass(frozen=True)
class Clip:
    """How to read a column of recordings.

    length  entries (samples of sound) per clip
    at      where the clip begins: "random", "start" or "center"
    short   what fills a recording that is shorter: "repeat" it, or "zero" behind it
    dtype   torch.float32 (int16 becomes -1 … 1), or None: as stored
    """

    length: int
    at: str = "random"
    short: str = "repeat"
    dtype: torch.dtype | None = torch.float32
    flip_share: float = 0.0

    def open(self, pack: Pack, name: str, batch: int) -> Filler:
        if self.at not in ("random", "start", "center") or self.short not in ("repeat", "zero") or self.length < 1:
            raise HotlapError(f"{self}: length is positive, at is random, start or center, short is repeat or zero.")
        column = pack.column(name)
        if column.kind == "ragged":
            return _Clips(self, pack, name, batch)
        raise HotlapError(f"Column {name!r} is {column.kind}: only columns of varying length hold recordings.")


class _Clips:
    def __init__(self, view: Clip, pack: Pack, name: str, batch: int) -> None:
        self._view, self._pack, self._batch = view, pack, batch
        self._column = column = pack.column(name)
        self._inner = int(np.prod(column.shape, dtype=np.int64))
        self._stored = as_torch(column.dtype)
        self._dtype = view.dtype or self._stored
        self._scale = 1 / 32768 if column.dtype == "int16" and self._dtype.is_floating_point else 1.0
        self._windows = window_view(pack, column.dtype, (view.length * self._inner,), (1,))

    def allocate(self) -> Buffers:
        shape = (self._batch, self._view.length, *self._column.shape)
        return {self._column.name: torch.empty(shape, dtype=self._dtype)}

    def fill(self, buffers: Buffers, rows: Indices, draws: Draws, flipped: int) -> dict[str, Any]:
        name, length = self._column.name, self._view.length
        out = buffers[name][: len(rows)]
        starts, lengths = self._pack.starts(name, rows), self._pack.lengths(name, rows)
        free = lengths - length
        if self._view.at == "random":
            begin = draws.below(f"clip-{name}", np.maximum(free, 0) + 1)
        else:
            begin = np.maximum(free, 0) // 2 if self._view.at == "center" else np.zeros_like(free)
        starts = starts + begin * self._column.unit_bytes
        flat = out.view(len(rows), -1)
        if (free >= 0).all():
            self._gather(starts, flat)
        else:
            self._gather_mixed(rows, starts, free, flat)
        return {name: out}

    def _gather(self, starts: Indices, out: torch.Tensor) -> None:
        if self._dtype == self._stored:
            gather_windows(self._windows, starts, out.view(self._windows[0].dtype))
            return
        if self._stored == torch.int16 and self._dtype == torch.float32 and kernel.ready():
            fused.sounds(self._pack.memory.tensor, starts, self._scale, out)
            return
        block = max(1, _BLOCK // max(1, out.shape[1]))
        scratch = torch.empty((block, out.shape[1]), dtype=self._stored)
        for first in range(0, len(starts), block):
            some = starts[first : first + block]
            target = out[first : first + len(some)]
            kept = scratch[: len(some)]
            gather_windows(self._windows, some, kept.view(self._windows[0].dtype))
            target.copy_(kept)
            if self._scale != 1.0:
                target.mul_(self._scale)

    def _gather_mixed(self, rows: Indices, starts: Indices, free: Indices, out: torch.Tensor) -> None:
        """Long recordings as above, short ones one by one."""
        long = np.flatnonzero(free >= 0)
        if len(long):
            held = torch.empty((len(long), out.shape[1]), dtype=out.dtype)
            self._gather(starts[long], held)
            out.index_copy_(0, torch.from_numpy(long), held)
        short = np.flatnonzero(free < 0)
        for k, piece in zip(short, pieces(self._pack, self._column, rows[short]), strict=True):
            values = torch.from_numpy(piece.reshape(-1).copy())
            out[k].zero_()
            if self._view.short == "zero" or not len(values):
                out[k, : len(values)].copy_(values)
            else:
                times = -(-out.shape[1] // len(values))
                out[k].copy_(values.repeat(times)[: out.shape[1]])
            if self._scale != 1.0:
                out[k].mul_(self._scale)
