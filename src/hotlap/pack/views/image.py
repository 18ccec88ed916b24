"""Images: crop, mirror, dtype, normalisation and layout in the same pass that copies them out of the pack.

The crop is a window of memory, so a crop costs its own bytes only. Windows are gathered in small blocks that stay in
cache while they are converted; mirrored samples come first, so that mirroring is one operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hotlap.pack import fused, kernel
from hotlap.pack.draws import Draws
from hotlap.pack.gather import Windows, gather_windows, window_view
from hotlap.pack.reader import Indices, Pack
from hotlap.pack.views.contract import Buffers, Filler
from hotlap.pack.views.convert import BLOCK, Convert, blocks, is_interleaved
from hotlap.records.errors import HotlapError

__all__ = ["Image"]


@dataclass(frozen=True)
class Image:
    """How to read a column of images, stored raw (uint8) or as encoded files.

    crop      (height, width); None: the whole image
    at        where the crop lies: "random" or "center"
    flip      probability of mirroring left and right
    mean, std of the values 0…255, one number or one per channel; None: values stay 0…255
    dtype     torch.float32, float16, bfloat16, or torch.uint8 (normalise on the device then)
    layout    "nchw" or "channels_last" (the shape is [batch, channel, height, width] either way)

    Views with the same crop size see the same window of a sample, so an image and its mask stay together.
    """

    crop: tuple[int, int] | None = None
    at: str = "random"
    flip: float = 0.0
    mean: float | Sequence[float] | None = None
    std: float | Sequence[float] | None = None
    dtype: torch.dtype = torch.float32
    layout: str = "nchw"

    @property
    def flip_share(self) -> float:
        return self.flip

    def open(self, pack: Pack, name: str, batch: int) -> Filler:
        for what, value, known in (("at", self.at, ("random", "center")),
                                   ("layout", self.layout, ("nchw", "channels_last"))):  # fmt: skip
            if value not in known:
                raise HotlapError(f"Image({what}={value!r}): it is {' or '.join(known)}.")
        if not 0 <= self.flip <= 1:
            raise HotlapError(f"Image(flip={self.flip!r}): it is a probability, from 0 to 1.")
        for what, given in (("mean", self.mean), ("std", self.std)):
            found = np.asarray(0.5 if given is None else given, np.float64)
            if not np.isfinite(found).all() or (what == "std" and not found.all()):
                raise HotlapError(f"Image({what}={given!r}): pixels become infinite or no numbers.",
                                  "Give finite numbers, for std none of them 0.")  # fmt: skip
        if self.dtype == torch.uint8 and (self.mean is not None or self.std is not None):
            raise HotlapError("Image(dtype=uint8) cannot be normalised: do that on the device.")
        if pack.column(name).kind == "bytes":
            from hotlap.pack.views.encoded import EncodedImages

            return EncodedImages(self, pack, name, batch)
        return _RawImages(self, pack, name, batch)


def corner(view: Image, draws: Draws, free: tuple[Any, Any]) -> tuple[Any, Any]:
    """Top and left of each sample's crop, given by how much it can move."""
    if view.at == "center":
        return free[0] // 2 + 0 * draws.below("", 1), free[1] // 2 + 0 * draws.below("", 1)
    return draws.below("crop-top", free[0] + 1), draws.below("crop-left", free[1] + 1)


class _RawImages:
    def __init__(self, view: Image, pack: Pack, name: str, batch: int) -> None:
        column = pack.column(name)
        if column.kind != "tensor" or column.dtype != "uint8" or len(column.shape) not in (2, 3):
            raise HotlapError(
                f"Column {name!r} is {column.kind} of {column.dtype} {column.shape}: not images of uint8 and one size."
            )
        self._view, self._pack, self._name, self._batch = view, pack, name, batch
        self._interleaved = is_interleaved(name, column.shape)
        shape = column.shape if len(column.shape) == 3 else (1, *column.shape)
        self._channels, self._height, self._width = (shape[2], *shape[:2]) if self._interleaved else shape
        crop = view.crop or (self._height, self._width)
        if not (0 < crop[0] <= self._height and 0 < crop[1] <= self._width):
            raise HotlapError(f"A crop of {crop} does not fit images of {self._height, self._width}.")
        self._crop, self._convert = crop, Convert(view, self._channels, crop)
        self._windows = self._window_view()
        self._fits_kernel = view.dtype == torch.float32 and (self._interleaved or view.layout == "nchw")

    def _window_view(self) -> Windows:
        (height, width), c = self._crop, self._channels
        if self._interleaved:  # lines of width x channel bytes
            return window_view(self._pack, "uint8", (height, width * c), (self._width * c, 1))
        plane = self._height * self._width
        return window_view(self._pack, "uint8", (c, height, width), (plane, self._width, 1))

    def _fused(self, starts: Indices, flipped: int, out: torch.Tensor) -> None:
        memory, size, numbers = self._pack.memory.tensor, (self._channels, *self._crop), self._convert.numbers
        if self._interleaved:
            fused.pixels(memory, starts, flipped, size, self._width * self._channels, numbers, out)
        else:
            fused.planes(memory, starts, flipped, size, (self._height * self._width, self._width), numbers, out)

    def allocate(self) -> Buffers:
        return {self._name: self._convert.allocate(self._batch)}

    def fill(self, buffers: Buffers, rows: Indices, draws: Draws, flipped: int) -> dict[str, Any]:
        out = buffers[self._name][: len(rows)]
        top, left = corner(self._view, draws, (self._height - self._crop[0], self._width - self._crop[1]))
        step = self._channels if self._interleaved else 1
        starts = self._pack.starts(self._name, rows) + (top * self._width + left) * step
        (height, width), c = self._crop, self._channels
        if self._fits_kernel and kernel.ready():
            self._fused(starts, flipped, out)
            return {self._name: out}
        end = len(rows)
        if self._convert.is_copy(self._interleaved):  # nothing to convert: straight into the buffer
            whole = out.permute(0, 2, 3, 1).flatten(2) if self._interleaved else out
            gather_windows(self._windows, starts[flipped:], whole[flipped:])
            end = flipped
        shape = (BLOCK, height, width * c) if self._interleaved else (BLOCK, c, height, width)
        scratch = torch.empty(shape, dtype=torch.uint8)
        for first, behind in blocks(flipped, end):
            block = gather_windows(self._windows, starts[first:behind], scratch[: behind - first])
            if self._interleaved:
                block = block.view(-1, height, width, c).permute(0, 3, 1, 2)
            self._convert.block(block.flip(-1) if first < flipped else block, out[first:behind])
        return {self._name: out}
