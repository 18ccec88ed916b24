"""The checksum of a pack's chunks: zlib's CRC-32, by the kernel where there is one."""

from __future__ import annotations

import ctypes
import zlib

import numpy as np

from hotlap.pack import kernel

__all__ = ["crc32"]

_LEAST_BYTES = 1 << 20
"""Less is not worth compiling for."""


def crc32(data: bytes | memoryview, before: int = 0) -> int:
    """As ``zlib.crc32``, going on from ``before``; other threads run meanwhile."""
    view = memoryview(data).cast("B")
    if len(view) < _LEAST_BYTES or not kernel.ready():
        return zlib.crc32(view, before)
    found, array = ctypes.c_uint32(before), np.frombuffer(view, np.uint8)
    done = kernel.library().crc32(array.ctypes.data, len(array), ctypes.byref(found))
    return zlib.crc32(view[done:], found.value)
