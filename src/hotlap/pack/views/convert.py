"""uint8 pixels to what the model takes: dtype, normalisation, layout. Small blocks, so that it stays in cache."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from hotlap.pack import fused, kernel
from hotlap.records.errors import HotlapError

if TYPE_CHECKING:
    from hotlap.pack.views.image import Image

__all__ = ["BLOCK", "Convert", "blocks", "is_interleaved", "tells_channels"]

BLOCK = 4
"""Images converted at once: 4 of 112x112 are 150 KB of bytes and 600 KB of floats, which a second-level cache holds."""

_CHANNELS = (1, 3, 4)


def blocks(flipped: int, end: int, size: int = BLOCK) -> Iterator[tuple[int, int]]:
    """First and behind the last of each block; one ends where the mirrored samples do."""
    return itertools.pairwise([*range(0, flipped, size), *range(flipped, end, size), end])


def tells_channels(shape: Sequence[int]) -> bool:
    """Whether either the first or the last of three sizes can be that of the channels."""
    return (shape[0] in _CHANNELS) != (shape[2] in _CHANNELS)


def is_interleaved(name: str, shape: Sequence[int]) -> bool:
    """Whether rows of this shape are [height, width, channel] rather than planes, or a single plane [height, width].

    HotlapError where it does not tell: width taken for channels, mirroring would swap these.
    """
    if len(shape) == 2:
        return False
    if not tells_channels(shape):
        which = "both" if shape[0] in _CHANNELS else "neither"
        raise HotlapError(
            f"Column {name!r} has rows of shape {tuple(shape)}: images have 1, 3 or 4 channels, first or last, and "
            f"here {which} could be them.",
            f"Read it as stored ({{{name!r}: None}}), and crop and mirror on the device.",
        )
    return shape[2] in _CHANNELS


class Convert:
    """Conversion of blocks, for one view and one size."""

    def __init__(self, view: Image, channels: int, size: tuple[int, int]) -> None:
        self._channels, self._size, self._dtype = channels, size, view.dtype
        self._last = view.layout == "channels_last"
        mean, std = (self._numbers(value) for value in (view.mean, view.std))
        self._scale: float | torch.Tensor | None = None
        self._shift: float | torch.Tensor = 0.0
        self.numbers: tuple[torch.Tensor | None, torch.Tensor | None] = None, None
        """Scale and shift of each channel, for the kernel."""
        if mean is None and std is None:
            return
        scale = 1.0 / (std if std is not None else torch.ones(channels))
        shift = -(mean if mean is not None else torch.zeros(channels)) * scale
        self.numbers = scale.contiguous(), shift.contiguous()
        if (scale == scale[0]).all() and (shift == shift[0]).all():
            self._scale, self._shift = float(scale[0]), float(shift[0])
            return
        # per channel: planes broadcast well; interleaved channels need the numbers written out for every pixel
        self._scale, self._shift = self._spread(scale), self._spread(shift)

    def _spread(self, numbers: torch.Tensor) -> torch.Tensor:
        if self._last:
            return numbers.expand(*self._size, self._channels).contiguous().permute(2, 0, 1)
        return numbers[:, None, None]

    def _numbers(self, value: float | Sequence[float] | None) -> torch.Tensor | None:
        if value is None:
            return None
        numbers = torch.tensor([value] if isinstance(value, int | float) else list(value), dtype=torch.float32)
        if numbers.numel() not in (1, self._channels):
            raise HotlapError(f"{numbers.numel()} numbers given to normalise {self._channels} channels.")
        return numbers.expand(self._channels)

    def allocate(self, batch: int) -> torch.Tensor:
        """A buffer for a batch."""
        kept = torch.channels_last if self._last else torch.contiguous_format
        return torch.empty((batch, self._channels, *self._size), dtype=self._dtype, memory_format=kept)

    def is_copy(self, interleaved: bool) -> bool:
        """Nothing to convert: rows can be gathered into the buffer as they are."""
        return self._dtype == torch.uint8 and interleaved == self._last

    def block(self, pixels: torch.Tensor, out: torch.Tensor) -> None:
        """``pixels`` [n, channel, height, width] of uint8 into ``out``; what is computed is rounded once."""
        if self._scale is not None and self._dtype != torch.float32:
            kept = torch.channels_last if self._last else torch.contiguous_format
            exact = torch.empty(out.shape, dtype=torch.float32, memory_format=kept)
            self._fill(pixels, exact)
            out.copy_(exact)
        else:
            self._fill(pixels, out)

    def _fill(self, pixels: torch.Tensor, out: torch.Tensor) -> None:
        if self._last and pixels.is_contiguous() and self._channels > 1:
            for channel in range(self._channels):  # a strided copy per channel is 2.5x a general permutation
                out[:, channel].copy_(pixels[:, channel])
        else:
            out.copy_(pixels)
        if self._scale is not None:
            out.mul_(self._scale).add_(self._shift)

    def pixels(self, pixels: torch.Tensor, mirrored: bool, out: torch.Tensor) -> None:
        """``pixels`` [n, height, width, channel] of uint8, all mirrored or none, into ``out``."""
        if self._dtype == torch.float32 and kernel.ready():
            n, height, width, c = pixels.shape
            starts = np.arange(n) * (height * width * c)
            fused.pixels(pixels, starts, n * mirrored, (c, height, width), width * c, self.numbers, out)
        else:
            planes = pixels.permute(0, 3, 1, 2)
            self.block(planes.flip(-1) if mirrored else planes, out)
