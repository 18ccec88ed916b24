"""Face photographs as squares of one size: decoded, the middle taken, resized where needed; aligned by landmarks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hotlap_workloads.parts.image_file import Pixels, open_rgb

__all__ = ["ARCFACE_POINTS", "align", "similarity", "square"]

Points = NDArray[np.float64]

ARCFACE_POINTS: Points = np.array(
    [(38.2946, 51.6963), (73.5318, 51.5014), (56.0252, 71.7366), (41.5493, 92.3655), (70.7299, 92.2041)]
)
"""Eyes, nose, corners of the mouth (x, y) in a crop of 112: the template of ArcFace (Deng et al. 2019)."""


def square(content: bytes, where: object, size: int, middle: int = 0) -> Pixels:
    """(size, size, 3), RGB: the largest square in the middle, or one of ``middle`` pixels, resized where it differs."""
    image = open_rgb(content, where)
    width, height = image.size
    side = min(width, height, middle or min(width, height))
    left, top = (width - side) // 2, (height - side) // 2
    if (width, height) != (side, side):
        image = image.crop((left, top, left + side, top + side))
    if side != size:
        image = image.resize((size, size), Image.Resampling.BILINEAR)
    return np.asarray(image)


def align(content: bytes, where: object, size: int, points: Points) -> Pixels:
    """(size, size, 3), RGB: turned, scaled and moved so that the five landmarks lie where ArcFace expects them."""
    image = open_rgb(content, where)
    scale = size / 112
    back = similarity(ARCFACE_POINTS * scale, points)  # Pillow asks where each pixel of the result comes from
    # a pixel's centre lies at .5 for Pillow, at .0 for the landmarks
    back[:, 2] += 0.5 - back[:, :2] @ [0.5, 0.5]
    image = image.transform((size, size), Image.Transform.AFFINE, back.ravel().tolist(), Image.Resampling.BILINEAR)
    return np.asarray(image)


def similarity(source: Points, target: Points) -> Points:
    """The 2x3 matrix of rotation, one scale and shift that maps points closest to points (Umeyama 1991)."""
    from_mean, to_mean = source.mean(0), target.mean(0)
    a, b = source - from_mean, target - to_mean
    left, stretch, right = np.linalg.svd(b.T @ a / len(source))
    sign = np.array([1.0, np.sign(np.linalg.det(left) * np.linalg.det(right))])  # no mirroring
    turn = left @ np.diag(sign) @ right
    turn = turn * ((stretch * sign).sum() / a.var(axis=0).sum())
    return np.column_stack([turn, to_mean - turn @ from_mean])
