"""Geometry of image batches [batch, channel, height, width]: crop, mirror, rotation, erasing, mixup.

Every function is the batched form of the usual per-sample transform: each sample has draws of its own.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as functional

from hotlap.pack.augment.draw import between, chosen, need_floats, per_sample, whole_below

__all__ = ["crop", "erase", "flip", "mixup", "rotate"]


def crop(images: torch.Tensor, size: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    """A random window of ``size``, another for each sample."""
    height, width = images.shape[-2:]
    if size[0] > height or size[1] > width:
        raise ValueError(f"a crop of {size} does not fit images of {(height, width)}")
    top = whole_below(images, height - size[0] + 1, generator)
    left = whole_below(images, width - size[1] + 1, generator)
    lines = (top[:, None] + torch.arange(size[0], device=images.device))[:, None, :, None]
    columns = (left[:, None] + torch.arange(size[1], device=images.device))[:, None, None, :]
    samples = torch.arange(len(images), device=images.device)[:, None, None, None]
    channels = torch.arange(images.shape[1], device=images.device)[None, :, None, None]
    return images[samples, channels, lines, columns]


def flip(images: torch.Tensor, share: float, generator: torch.Generator) -> torch.Tensor:
    """Mirror left and right with probability ``share``."""
    mirrored = per_sample(chosen(images, share, generator), images)
    return torch.where(mirrored, images.flip(-1), images)


def rotate(images: torch.Tensor, degrees: float, generator: torch.Generator) -> torch.Tensor:
    """Turn about the middle by an angle in [-degrees, degrees], bilinear; what comes from outside is 0."""
    need_floats(images=images)
    angle = between(images, -degrees, degrees, generator) * (math.pi / 180)
    height, width = images.shape[-2:]
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    # coordinates run from -1 to 1 on both axes, so a turn of an oblong image must be scaled
    upper = torch.stack([cos, -sin * (height / width), zero], 1)
    lower = torch.stack([sin * (width / height), cos, zero], 1)
    grid = functional.affine_grid(torch.stack([upper, lower], 1), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid.to(images.dtype), mode="bilinear", align_corners=False)


def erase(images: torch.Tensor, share: float, generator: torch.Generator, area: tuple[float, float] = (0.02, 0.33),
          ratio: tuple[float, float] = (0.3, 3.3), value: float = 0.0) -> torch.Tensor:  # fmt: skip
    """Random erasing: with probability ``share``, a rectangle of a random area and aspect becomes ``value``.

    As the per-sample form, except that a rectangle too large for the image is cut to it instead of drawn again.
    """
    height, width = images.shape[-2:]
    hit = chosen(images, share, generator)
    pixels = between(images, *area, generator) * (height * width)
    aspect = between(images, math.log(ratio[0]), math.log(ratio[1]), generator).exp()
    tall = (pixels * aspect).sqrt().round().long().clamp(1, height)
    wide = (pixels / aspect).sqrt().round().long().clamp(1, width)
    top = whole_below(images, height - tall + 1, generator)
    left = whole_below(images, width - wide + 1, generator)
    lines, columns = torch.arange(height, device=images.device), torch.arange(width, device=images.device)
    in_lines = (lines >= top[:, None]) & (lines < (top + tall)[:, None])
    in_columns = (columns >= left[:, None]) & (columns < (left + wide)[:, None])
    erased = in_lines[:, None, :, None] & in_columns[:, None, None, :] & per_sample(hit, images)
    return images.masked_fill(erased, value)


def mixup(
    batch: torch.Tensor, alpha: float, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(mixed, partner, weight): ``weight * batch + (1 - weight) * batch[partner]``, weight from Beta(alpha, alpha).

    The loss is ``weight * loss(y) + (1 - weight) * loss(y[partner])``, sample by sample. Images or sounds alike.
    """
    need_floats(batch=batch)
    shape = torch.full((2, len(batch)), alpha, device=batch.device)
    gamma = torch._standard_gamma(shape, generator=generator).clamp_min(torch.finfo(torch.float32).tiny)
    weight = gamma[0] / gamma.sum(0)
    partner = torch.randperm(len(batch), generator=generator, device=batch.device)
    by_sample = per_sample(weight, batch).to(batch.dtype)
    return by_sample * batch + (1 - by_sample) * batch[partner], partner, weight
