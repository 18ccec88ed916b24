"""Gather, mirror, convert, normalise and lay out in one pass of the kernel: half the work of several passes in torch.

Where :func:`hotlap.pack.kernel.ready` says that there is a kernel; the same bits as torch gives.
"""

from __future__ import annotations

import numpy as np
import torch

from hotlap.pack import kernel
from hotlap.pack.reader import Indices

__all__ = ["pixels", "planes", "sounds"]

Numbers = tuple[torch.Tensor | None, torch.Tensor | None]
"""Scale and shift of each channel; None: values stay as they are."""


def planes(memory: torch.Tensor, starts: Indices, flipped: int, shape: tuple[int, int, int], strides: tuple[int, int],
           numbers: Numbers, out: torch.Tensor) -> None:  # fmt: skip
    """Windows of (channel, height, width) of uint8, planes ``strides`` apart, into contiguous float32 ``out``."""
    assert out.dtype == torch.float32 and out.is_contiguous()
    first = np.ascontiguousarray(starts, np.int64)
    kernel.library().planes_to_planes(memory.data_ptr(), first.ctypes.data, len(first), flipped, *shape, *strides,
                              *map(_place, numbers), numbers[0] is not None, out.data_ptr(), _whole(out))  # fmt: skip


def pixels(memory: torch.Tensor, starts: Indices, flipped: int, shape: tuple[int, int, int], line: int,
           numbers: Numbers, out: torch.Tensor) -> None:  # fmt: skip
    """The same for interleaved rows ``line`` bytes apart, into contiguous or channels-last ``out``."""
    assert out.dtype == torch.float32
    last = out.is_contiguous(memory_format=torch.channels_last)
    assert last or out.is_contiguous()
    first = np.ascontiguousarray(starts, np.int64)
    call = kernel.library().pixels_to_pixels if last else kernel.library().pixels_to_planes
    call(memory.data_ptr(), first.ctypes.data, len(first), flipped, *shape, line,
         *map(_place, numbers), numbers[0] is not None, out.data_ptr(), _whole(out))  # fmt: skip


def _whole(out: torch.Tensor) -> int:
    """Numbers in the buffer that ``out`` is a part of: a large batch is written past the caches, in parts too."""
    return out.untyped_storage().nbytes() // out.element_size()


def _place(numbers: torch.Tensor | None) -> int | None:
    return None if numbers is None else numbers.data_ptr()


def sounds(memory: torch.Tensor, starts: Indices, scale: float, out: torch.Tensor) -> None:
    """Stretches of int16 into contiguous float32 ``out`` [n, length]."""
    assert out.dtype == torch.float32 and out.is_contiguous()
    first = np.ascontiguousarray(starts, np.int64)
    kernel.library().sounds(memory.data_ptr(), first.ctypes.data, len(first), out.shape[1], scale, out.data_ptr())
