"""CLAHE and motion blur of one image, in the loading process: plainly, channel by channel and tile by tile."""

from __future__ import annotations

import math
import random

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate

from hotlap_workloads.parts.image_file import Pixels

__all__ = ["BLUR_PX", "BLUR_SHARE", "CLAHE_SHARE", "CLIP", "TILES", "SampleAugment", "blurred", "equalised"]

CLAHE_SHARE, BLUR_SHARE = 0.3, 0.2
"""Of the images, for both ways of doing it."""
CLIP, TILES = 2.0, 8
"""CLAHE: height of the cut over the mean of the histogram, tiles along each side."""
BLUR_PX = 7
"""Length of the smear."""


class SampleAugment:
    """Some images equalised, some blurred, by the draw's own random numbers."""

    def __init__(self, clahe: bool, motion_blur: bool) -> None:
        self.clahe, self.motion_blur = clahe, motion_blur

    def __call__(self, pixels: Pixels, dice: random.Random) -> Pixels:
        if self.clahe and dice.random() < CLAHE_SHARE:
            pixels = equalised(pixels)
        if self.motion_blur and dice.random() < BLUR_SHARE:
            pixels = blurred(pixels, dice.uniform(0.0, math.pi))
        return pixels


def equalised(pixels: Pixels) -> Pixels:
    """Contrast-limited adaptive histogram equalisation (Zuiderveld 1994) of each channel."""
    height, width, channels = pixels.shape
    tall, wide = -(-height // TILES), -(-width // TILES)
    whole = np.pad(pixels, ((0, tall * TILES - height), (0, wide * TILES - width), (0, 0)), mode="reflect")
    up, down, v = _neighbours(whole.shape[0], tall)
    left, right, h = _neighbours(whole.shape[1], wide)
    out = np.empty(whole.shape, np.float64)
    for channel in range(channels):
        plane = whole[:, :, channel]
        table = np.empty((TILES, TILES, 256))
        for i in range(TILES):
            for j in range(TILES):
                table[i, j] = _mapping(plane[i * tall : (i + 1) * tall, j * wide : (j + 1) * wide])
        upper = (1 - h) * table[up[:, None], left, plane] + h * table[up[:, None], right, plane]
        lower = (1 - h) * table[down[:, None], left, plane] + h * table[down[:, None], right, plane]
        out[:, :, channel] = (1 - v[:, None]) * upper + v[:, None] * lower
    return np.clip(np.rint(out[:height, :width]), 0, 255).astype(np.uint8)


def _mapping(tile: Pixels) -> NDArray[np.float64]:
    """New value of each of the 256 levels: the cut histogram summed up, its excess spread evenly."""
    histogram = np.bincount(tile.ravel(), minlength=256).astype(np.float64)
    limit = max(1.0, CLIP * tile.size / 256)
    excess = np.clip(histogram - limit, 0, None).sum()
    out: NDArray[np.float64] = (np.minimum(histogram, limit) + excess / 256).cumsum() * (255 / tile.size)
    return out


def _neighbours(length: int, tile: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The tiles before and after each pixel, and how far it lies on the way between their middles."""
    place = (np.arange(length) + 0.5) / tile - 0.5
    low = np.floor(place).astype(np.int64)
    return np.clip(low, 0, TILES - 1), np.clip(low + 1, 0, TILES - 1), place - low


def blurred(pixels: Pixels, angle: float) -> Pixels:
    """Smeared along a line of BLUR_PX pixels, one pixel wide with soft edges."""
    at = np.arange(BLUR_PX) - BLUR_PX // 2
    across = np.abs(at[:, None] * math.cos(angle) - at[None, :] * math.sin(angle))
    along = np.abs(at[:, None] * math.sin(angle) + at[None, :] * math.cos(angle))
    kernel = np.clip(1 - across, 0, None) * (along <= BLUR_PX / 2)
    kernel /= kernel.sum()
    smeared = [correlate(pixels[:, :, channel].astype(np.float64), kernel, mode="nearest") for channel in range(3)]
    out: Pixels = np.clip(np.rint(np.stack(smeared, axis=2)), 0, 255).astype(np.uint8)
    return out
