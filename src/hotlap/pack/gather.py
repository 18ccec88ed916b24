"""Many rows, or windows of many rows, copied in one pass: one ``index_select`` over a view of all addresses.

The view has one entry per byte of the pack (its first stride is one element), each as large as the window; so picking
windows by their first address is picking rows of a table. Nothing but the bytes asked for is read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from hotlap.pack.reader import Indices, Pack

__all__ = ["Windows", "as_torch", "gather_rows", "gather_windows", "row_view", "window_view"]

Windows = tuple[torch.Tensor, int]
"""Windows by their first address, and the bytes from one to the next."""
_UNSIGNED = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}


def as_torch(dtype: str) -> torch.dtype:
    """torch's name of a column's dtype."""
    found = getattr(torch, dtype)
    assert isinstance(found, torch.dtype)
    return found


def window_view(pack: Pack, dtype: str, shape: Sequence[int], strides: Sequence[int]) -> Windows:
    """All windows of ``shape`` (``strides`` in elements), and the bytes from one to the next.

    Unsigned words that torch cannot index are taken as signed ones of the same size; the caller views them back.
    """
    plain = as_torch(_UNSIGNED.get(dtype, dtype))
    width = torch.empty(0, dtype=plain).element_size()
    flat = pack.memory.tensor[: pack.memory.tensor.numel() // width * width].view(plain)
    span = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + 1
    count = max(flat.numel() - span + 1, 0)
    return flat.as_strided((count, *shape), (1, *strides)), width


def gather_windows(view: Windows, starts: Indices, out: torch.Tensor) -> torch.Tensor:
    """Copy the windows that begin at byte addresses ``starts`` into ``out``."""
    windows, width = view
    torch.index_select(windows, 0, torch.from_numpy(starts // width if width > 1 else starts), out=out)
    return out


def row_view(pack: Pack, name: str) -> Windows:
    """All places where a whole row of a fixed column could lie."""
    column = pack.column(name)
    strides = [int(np.prod(column.shape[i + 1 :], dtype=np.int64)) for i in range(len(column.shape))]
    return window_view(pack, column.dtype, column.shape, strides)


def gather_rows(
    pack: Pack, name: str, rows: Indices, out: torch.Tensor | None = None, view: Windows | None = None
) -> torch.Tensor:
    """Whole rows of a fixed column, by its :func:`row_view`, if that has been made."""
    column = pack.column(name)
    if out is None:
        out = torch.empty((len(rows), *column.shape), dtype=as_torch(column.dtype))
    if out.numel():
        found, _ = view = view or row_view(pack, name)
        gather_windows(view, pack.starts(name, rows), out.view(found.dtype))
    return out
