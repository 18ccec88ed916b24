"""Windows of JPEGs without the rest of the picture, by the libjpeg-turbo that Pillow brings along.

simplejpeg and Pillow decode whole pictures, of which a crop of half the area throws half away. ``jpeg.c`` asks the same
decoder for the window alone, and gets the same bits. Where Pillow is linked with another library, or there is no
kernel, pictures are decoded whole.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.pack import kernel
from hotlap.pack.reader import Indices

__all__ = ["Floats", "decode_windows", "ready"]

_FUNCTIONS = (
    *("jpeg_std_error", "jpeg_CreateDecompress", "jpeg_mem_src", "jpeg_read_header", "jpeg_start_decompress"),
    *("jpeg_crop_scanline", "jpeg_skip_scanlines", "jpeg_read_scanlines", "jpeg_abort_decompress"),
    "jpeg_destroy_decompress",
)
"""In the order of ``Library`` in jpeg.c."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


@functools.cache
def _functions() -> ctypes.Array[ctypes.c_void_p] | None:
    """Addresses in Pillow's own library, of the interface that jpeg.c is written for; None where it is another."""
    if struct.calcsize("P") != 8 or sys.platform == "win32":  # where a long has 4 bytes the structure is another
        return None
    try:
        import PIL
    except ImportError:
        return None
    package = Path(PIL.__file__).parent
    for path in [*package.parent.glob("pillow.libs/libjpeg-*.so.62.*"), *package.glob(".dylibs/libjpeg.62.*")]:
        try:
            library = ctypes.CDLL(str(path))
            found = [ctypes.cast(getattr(library, name), ctypes.c_void_p) for name in _FUNCTIONS]
        except (OSError, AttributeError):  # of an older version, without windows
            continue
        return (ctypes.c_void_p * len(found))(*(f.value for f in found))
    return None


def ready() -> bool:
    """Whether :func:`decode_windows` can be called."""
    return kernel.ready() and _functions() is not None


def decode_windows(
    memory: Any, starts: Indices, sizes: Indices, down: Floats, along: Floats, moving: int, out: np.ndarray[Any, Any]
) -> int:
    """Windows of the JPEGs that lie at ``starts`` in ``memory``, into ``out`` [n, height, width, 3] of uint8.

    A window begins at line ``int(down * (free + moving))``, where it is free to begin at 0 to ``free``; its column
    likewise. Returns how many were decoded before one that cannot be (damaged, no JPEG, smaller than the window).
    """
    assert out.dtype == np.uint8 and out.flags.c_contiguous and len(out) >= len(starts)
    lying = [np.ascontiguousarray(a, np.int64) for a in (starts, sizes)]  # kept: C reads what may be copies
    places = [np.ascontiguousarray(a, np.float64) for a in (down, along)]
    found: int = kernel.library().jpeg_windows(
        _functions(), memory.data_ptr(), *(a.ctypes.data for a in lying), len(starts),
        *(a.ctypes.data for a in places), moving, *out.shape[1:3], out.ctypes.data,
    )  # fmt: skip
    return found
