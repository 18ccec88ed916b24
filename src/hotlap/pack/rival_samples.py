"""Rows of a pack as plain bytes, and what a library that stores such rows has to do to them.

It is what the pack's views do (crop, mirror, clip, convert, pad), sample by sample with numpy, the quickest that a
collate function can be without code of its own: windows are not copied until they are stacked, a batch is converted at
once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from hotlap.pack.draws import Draws
from hotlap.pack.reader import Pack
from hotlap.pack.schema import Column
from hotlap.pack.sources.decode import decode_image, fast_jpeg
from hotlap.pack.views.clip import Clip
from hotlap.pack.views.contract import View, one_flip_share
from hotlap.pack.views.convert import Convert, is_interleaved
from hotlap.pack.views.image import Image, corner
from hotlap.pack.views.plain import Flat, Padded, Whole
from hotlap.pack.way import Batch, Views
from hotlap.records.errors import HotlapError

__all__ = ["Samples", "key"]

Array = np.ndarray[Any, Any]


def key(number: int) -> str:
    """What a column is called in a copy: its own name need not be one that a tar or another library allows."""
    return f"c{number}"


class Samples:
    """The columns that ``views`` name. Can be sent to other processes."""

    def __init__(self, pack: Pack, views: Views) -> None:
        self.columns = [pack.column(name) for name in views]
        self._views: list[View] = [view or Whole() for view in views.values()]
        self._flip = one_flip_share(self._views)

    def stored(self, pack: Pack, row: int) -> dict[str, bytes]:
        """A row as it is written: each column's bytes."""
        rows = pack.rows([row])
        found = {}
        for number, column in enumerate(self.columns):
            start = int(pack.starts(column.name, rows)[0])
            entries = 1 if column.kind == "tensor" else int(pack.lengths(column.name, rows)[0])
            found[key(number)] = pack.memory.array[start : start + entries * column.unit_bytes].tobytes()
        return found

    def sizes(self, pack: Pack) -> Array:
        """Bytes of each row of the pack, as it is written."""
        total = np.zeros(len(pack), np.int64)
        for column in self.columns:
            total += column.unit_bytes * (1 if column.kind == "tensor" else pack.lengths(column.name))
        return total

    def collate(self, rows: Sequence[Mapping[str, Any]]) -> Batch:
        """A batch of rows that :meth:`stored` made, or that hold arrays in place of bytes."""
        draws = Draws(int(torch.randint(1 << 62, ())), 0, np.arange(len(rows)))
        mirrored = draws.uniform("flip") < self._flip
        batch: Batch = {}
        for number, (column, view) in enumerate(zip(self.columns, self._views, strict=True)):
            values = [_loaded(column, row[key(number)]) for row in rows]
            if isinstance(view, Image):
                batch[column.name] = _images(view, column, values, draws, mirrored if view.flip else None)
            elif isinstance(view, Clip):
                batch[column.name] = _clips(view, column, values, draws)
            else:
                batch |= _plain(view, column, values)
        return batch


def _loaded(column: Column, value: Any) -> Any:
    """Bytes or text as they are, numbers as an array over the bytes."""
    if column.kind == "bytes":
        return value
    if column.kind == "text":
        return value if isinstance(value, str) else bytes(value).decode()
    if not isinstance(value, np.ndarray):
        value = np.frombuffer(value, column.dtype)
    return value.reshape(-1, *column.shape) if column.kind == "ragged" else value.reshape(column.shape)


def _images(view: Image, column: Column, values: list[Any], draws: Draws, mirrored: Array | None) -> torch.Tensor:
    encoded = column.kind == "bytes"
    if encoded:
        values = [_pixels(content) for content in values]
    elif len(column.shape) == 2:
        values = [plane[None] for plane in values]
    together = encoded or is_interleaved(column.name, column.shape)
    sizes = np.array([value.shape[:2] if together else value.shape[1:] for value in values])
    crop = view.crop or (int(sizes[0, 0]), int(sizes[0, 1]))
    free = sizes - crop
    if (free < 0).any():
        raise HotlapError(f"Column {column.name!r} holds an image smaller than the crop {crop}.")
    top, left = (places.tolist() for places in corner(view, draws, (free[:, 0], free[:, 1])))
    windows = []
    for k, (value, y, x) in enumerate(zip(values, top, left, strict=True)):
        place = slice(y, y + crop[0]), slice(x, x + crop[1])
        window = value[place] if together else value[:, *place]
        if mirrored is not None and mirrored[k]:
            window = window[:, ::-1] if together else window[..., ::-1]
        windows.append(window)
    pixels = torch.from_numpy(np.stack(windows))
    planes = pixels.permute(0, 3, 1, 2) if together else pixels
    convert = Convert(view, planes.shape[1], crop)
    out = convert.allocate(len(planes))
    convert.block(planes, out)
    return out


def _pixels(content: bytes) -> Array:
    """[height, width, 3]."""
    found = fast_jpeg(content)
    return decode_image(content).transpose(1, 2, 0) if found is None else found


def _clips(view: Clip, column: Column, values: list[Array], draws: Draws) -> torch.Tensor:
    free = np.array([len(value) for value in values]) - view.length
    movable = np.maximum(free, 0)
    if view.at == "random":
        begin = draws.below(f"clip-{column.name}", movable + 1)
    else:
        begin = movable // 2 if view.at == "center" else np.zeros_like(free)
    clips = [value[first : first + view.length] if len(value) >= view.length else _lengthened(view, value)
             for value, first in zip(values, begin.tolist(), strict=True)]  # fmt: skip
    found = torch.from_numpy(np.stack(clips))
    if view.dtype in (None, found.dtype):
        return found
    converted = found.to(view.dtype)
    is_sound = column.dtype == "int16" and converted.is_floating_point()
    return converted.mul_(1 / 32768) if is_sound else converted


def _lengthened(view: Clip, value: Array) -> Array:
    full = np.zeros((view.length, *value.shape[1:]), value.dtype)
    if view.short == "zero" or not len(value):
        full[: len(value)] = value
    else:
        full[:] = np.resize(value, full.shape)  # which repeats it
    return full


def _plain(view: View, column: Column, values: list[Any]) -> Batch:
    name = column.name
    if isinstance(view, Whole) and column.kind in ("bytes", "text"):
        return {name: values}
    if isinstance(view, Whole) and column.kind == "tensor":
        return {name: torch.from_numpy(np.stack(values))}
    if not isinstance(view, Whole | Padded | Flat):
        raise HotlapError(f"{type(view).__name__} is a view that only the pack's own readers know.")
    lengths = torch.tensor([len(value) for value in values])
    if isinstance(view, Flat):
        return {name: torch.from_numpy(np.concatenate(values)), f"{name}_length": lengths}
    fill = view.value if isinstance(view, Padded) else 0
    out = np.full((len(values), int(lengths.max()), *column.shape), fill, column.dtype)
    for target, value in zip(out, values, strict=True):
        target[: len(value)] = value
    return {name: torch.from_numpy(out), f"{name}_length": lengths}
