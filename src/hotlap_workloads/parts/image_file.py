"""Image files decoded as RGB: whole and of a sane size, or an error that names them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from hotlap_workloads.errors import DataError

__all__ = ["MAX_PIXELS", "Pixels", "open_rgb", "read_bytes"]

Pixels = NDArray[np.uint8]
MAX_PIXELS = 89_478_485
"""A larger image is refused: a few KB of PNG can ask for terabytes. 256 MiB as RGB, from where Pillow warns."""
DEEP_GREY = ("I", "F")
AS_8_BITS = "Save it with 8 bits."


def open_rgb(source: Path | bytes, where: object) -> Image.Image:
    """The image of a file, or of a file's content; ``where`` is what errors call it."""
    try:
        with Image.open(source if isinstance(source, Path) else io.BytesIO(source)) as image:
            if image.width * image.height > MAX_PIXELS:
                raise Image.DecompressionBombError
            if image.mode in DEEP_GREY or image.mode.startswith("I;16"):
                raise DataError(where, "has more than 8 bits a grey pixel, most of which would be white.", AS_8_BITS)
            return image.convert("RGB")
    except DataError:
        raise
    except Exception as err:  # Pillow's plug-ins raise whatever they like on damaged files
        raise _named(err, where) from err


def read_bytes(path: Path) -> bytes:
    """The file's content, to be opened later."""
    try:
        return path.read_bytes()
    except OSError as err:
        raise _named(err, path) from err


def _named(err: Exception, where: object) -> DataError:
    """What is wrong with the file, for people."""
    if isinstance(err, FileNotFoundError):
        return DataError(where, "does not exist.")
    if isinstance(err, OSError) and err.strerror:
        return DataError(where, f"cannot be read: {err.strerror}.")
    if isinstance(err, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return DataError(where, f"has more than {MAX_PIXELS} pixels, and so large an image is not decoded.")
    if isinstance(err, UnidentifiedImageError):
        return DataError(where, "is no readable image: empty, damaged at its beginning, or of no known format.")
    what = " ".join(str(err).split())
    if "truncated" in what.lower():
        return DataError(where, "is cut short.", "Copy it again.")
    return DataError(where, f"is no readable image: {type(err).__name__}: {what[:120]}.", "Copy it again.")
