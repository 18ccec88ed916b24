"""Augmentation of whole batches on whatever device they lie: each sample with draws of its own, reproducible by seed.

generator = torch.Generator(device).manual_seed(0)
images = augment.colour(augment.flip(images, 0.5, generator), generator, brightness=0.4)

What computes with the values needs floats; crop, flip, erase, crop_sound and mask_bands take whole numbers too.
"""

from __future__ import annotations

from hotlap.pack.augment.colours import clahe, colour, motion_blur
from hotlap.pack.augment.images import crop, erase, flip, mixup, rotate
from hotlap.pack.augment.sounds import add_noise, crop_sound, mask_bands, reverberate

__all__ = [
    "add_noise",
    "clahe",
    "colour",
    "crop",
    "crop_sound",
    "erase",
    "flip",
    "mask_bands",
    "mixup",
    "motion_blur",
    "reverberate",
    "rotate",
]
