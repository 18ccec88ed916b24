"""Images from files: whole, as RGB bytes, or an error that names the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hotlap_workloads.errors import DataError

__all__ = ["Pixels", "read_image", "resized"]

Pixels = NDArray[np.uint8]
"""(height, width, 3)."""


def read_image(path: Path, size: tuple[int, int] | None = None) -> Pixels:
    """The image; ``size`` is the (width, height) that its annotations are for."""
    try:
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGB"))
    except FileNotFoundError as err:
        raise DataError(path, f"cannot be read: {err.strerror}.") from err
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as err:  # Pillow raises any of these
        raise DataError(path, f"is no readable image: {err}.", "Copy it again.") from err
    if size is not None and (pixels.shape[1], pixels.shape[0]) != size:
        wide, tall = pixels.shape[1], pixels.shape[0]
        raise DataError(path, f"is {wide} x {tall}, and its annotations are for {size[0]} x {size[1]}.")
    return pixels


def resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """To (width, height), bilinear over the area that each new pixel covers."""
    if (pixels.shape[1], pixels.shape[0]) == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR))
