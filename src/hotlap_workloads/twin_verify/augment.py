"""Bytes to numbers, and looks: mirrored or not, brightness, contrast. One image, or a batch on its device."""

from __future__ import annotations

import random
from typing import NamedTuple

import torch
from torch import Tensor

from hotlap_workloads.engine.order import draw_seed

__all__ = ["AS_IT_IS", "Look", "apply_look", "apply_looks", "draw_look", "normalised"]

STRENGTH = 0.2
"""Brightness and contrast are multiplied by at most 1 plus or minus this."""


class Look(NamedTuple):
    """How an image is changed: 1.0 mirrors it; the factors are 1 where nothing changes."""

    mirrored: float
    contrast: float
    brightness: float


AS_IT_IS = Look(0.0, 1.0, 1.0)


def draw_look(seed: int, epoch: int, group: int, place: int) -> Look:
    """The look of an image of a group: the same in both pairs that the anchor is in."""
    draw = random.Random(draw_seed(seed + 1, epoch, 3 * group + place))
    return Look(float(draw.random() < 0.5), *(draw.uniform(1 - STRENGTH, 1 + STRENGTH) for _ in range(2)))


def normalised(images: Tensor) -> Tensor:
    """Bytes 0 to 255 as floats -1 to 1."""
    return images.float() / 127.5 - 1


def apply_look(image: Tensor, look: Look) -> Tensor:
    """Of one normalised image, (3, size, size)."""
    if look.mirrored:
        image = image.flip(-1)
    mean = image.mean()
    return ((image - mean) * look.contrast + mean) * look.brightness


def apply_looks(images: Tensor, looks: Tensor) -> Tensor:
    """Of normalised images, (images, 3, size, size), with their looks in rows: the same numbers as one by one."""
    mirrored, contrast, brightness = looks[:, :, None, None, None].unbind(1)
    images = torch.where(mirrored > 0, images.flip(-1), images)
    mean = images.mean(dim=(1, 2, 3), keepdim=True)
    return ((images - mean) * contrast + mean) * brightness
