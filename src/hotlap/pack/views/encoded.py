"""Encoded images (JPEG, PNG): decoded batch by batch, the crop alone where that can be, or copied out of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hotlap.pack import jpeg_windows
from hotlap.pack.draws import Draws
from hotlap.pack.jpeg_windows import Floats, decode_windows
from hotlap.pack.reader import Indices, Pack
from hotlap.pack.sources.contract import BadRow
from hotlap.pack.sources.decode import decode_image, fast_jpeg
from hotlap.pack.views.contract import Buffers
from hotlap.pack.views.convert import Convert, blocks
from hotlap.records.errors import HotlapError

if TYPE_CHECKING:
    from hotlap.pack.views.image import Image

__all__ = ["EncodedImages"]

_BLOCK = 16
"""Images decoded in one call, and converted while the caches hold them: 600 KB at 112x112."""


class EncodedImages:
    """Files of a ``bytes`` column as batches; all must be at least as large as the crop."""

    def __init__(self, view: Image, pack: Pack, name: str, batch: int) -> None:
        if view.crop is None:
            raise HotlapError(f"Column {name!r} holds encoded images, which may differ in size: give Image a crop.")
        self._view, self._pack, self._name, self._batch = view, pack, name, batch
        self._crop, self._convert = view.crop, Convert(view, 3, view.crop)

    def allocate(self) -> Buffers:
        return {self._name: self._convert.allocate(self._batch)}

    def fill(self, buffers: Buffers, rows: Indices, draws: Draws, flipped: int) -> dict[str, Any]:
        out = buffers[self._name][: len(rows)]
        down, along = draws.uniform("crop-top"), draws.uniform("crop-left")
        if self._view.at == "center":
            down = along = np.full(len(rows), 0.5)
        starts, sizes = self._pack.starts(self._name, rows), self._pack.lengths(self._name, rows)
        scratch = torch.empty((_BLOCK, *self._crop, 3), dtype=torch.uint8)
        windows = scratch.numpy()
        for first, behind in blocks(flipped, len(rows), _BLOCK):
            here = slice(first, behind)
            self._windows(rows[here], starts[here], sizes[here], down[here], along[here], windows)
            self._convert.pixels(scratch[: behind - first], first < flipped, out[first:behind])
        return {self._name: out}

    def _windows(self, rows: Indices, starts: Indices, sizes: Indices, down: Floats, along: Floats,
                 windows: np.ndarray[Any, Any]) -> None:  # fmt: skip
        """The crop of each row; what is no JPEG of the usual kind, or no crop, takes the way of whole pictures."""
        moving = 0 if self._view.at == "center" else 1
        quick, memory, k = jpeg_windows.ready(), self._pack.memory.tensor, 0
        while k < len(rows):
            if quick:
                k += decode_windows(memory, starts[k:], sizes[k:], down[k:], along[k:], moving, windows[k:])
            if k < len(rows):
                pixels = self._decode(int(rows[k]), int(starts[k]), int(sizes[k]))
                windows[k] = self._window(int(rows[k]), pixels, down[k], along[k], moving)
                k += 1

    def _window(self, row: int, pixels: np.ndarray[Any, Any], down: float, along: float,
                moving: int) -> np.ndarray[Any, Any]:  # fmt: skip
        height, width = self._crop
        free = pixels.shape[0] - height, pixels.shape[1] - width
        if min(free) < 0:
            raise HotlapError(f"Row {row} has {pixels.shape[:2]} pixels, less than the crop {self._crop}.")
        top, left = int(down * (free[0] + moving)), int(along * (free[1] + moving))
        return pixels[top : top + height, left : left + width]

    def _decode(self, row: int, start: int, size: int) -> np.ndarray[Any, Any]:
        """[height, width, 3]."""
        content = self._pack.memory.array[start : start + size].tobytes()
        try:
            found = fast_jpeg(content)
            return decode_image(content).transpose(1, 2, 0) if found is None else found
        except BadRow as err:
            raise HotlapError(f"Row {row} of column {self._name!r} cannot be decoded: {err.what}") from err
