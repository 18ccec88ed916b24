"""An image file as bytes of one size, or an error that names the file."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hotlap_workloads.errors import DataError

__all__ = ["Pixels", "read_sized"]

Pixels = NDArray[np.uint8]
MAX_PIXELS = 64_000_000
"""A larger image is refused: a few KB of PNG can ask for terabytes. Photographs have 50 million at most."""


def read_sized(path: Path, size: int) -> Pixels:
    """(3, size, size), RGB by planes, resized with bilinear weights over all pixels that it covers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of large images; ours is the limit that counts
            image = Image.open(path)
        with image:
            if image.width * image.height > MAX_PIXELS:
                raise DataError(path, f"has {image.width} x {image.height} pixels; at most {MAX_PIXELS} are decoded.")
            rgb = image.convert("RGB")
        if rgb.size != (size, size):
            rgb = rgb.resize((size, size), Image.Resampling.BILINEAR)
    except FileNotFoundError as err:
        raise DataError(path, "does not exist.") from err
    except DataError:
        raise
    except Exception as err:  # Pillow's plug-ins raise whatever they like on damaged files
        raise DataError(path, f"is no whole image: {err}.", "Copy it again.") from err
    return np.ascontiguousarray(np.asarray(rgb).transpose(2, 0, 1))
