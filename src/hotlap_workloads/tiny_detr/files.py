"""Images from files, of the sizes that their annotations are for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.image_file import Pixels, open_rgb
from hotlap_workloads.tiny_detr.shapes import fitted

__all__ = ["FromFiles", "resized"]


@dataclass(frozen=True)
class FromFiles:
    """Decodes image number i, (height, width, 3). A class, so that loading processes can be started with it.

    ``sizes`` are (width, height), as the annotations have them. What is larger than ``most``, (short side, long side),
    is made smaller.
    """

    paths: Sequence[Path]
    sizes: Sequence[tuple[int, int]]
    most: tuple[int, int] | None = None

    def __call__(self, number: int) -> Pixels:
        path, (wide, tall) = self.paths[number], self.sizes[number]
        image = open_rgb(path, path)
        if image.size != (wide, tall):
            raise DataError(path, f"is {image.width} x {image.height}, and its annotations are for {wide} x {tall}.")
        pixels = np.asarray(image)
        if self.most is None:
            return pixels
        kept = fitted((wide, tall), *self.most)
        return resized(pixels, kept) if kept[0] < wide else pixels


def resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """To (width, height), bilinear over the area that each new pixel covers."""
    if (pixels.shape[1], pixels.shape[0]) == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR))
