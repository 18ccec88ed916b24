"""Colours, sharpness and local contrast of image batches [batch, channel, height, width], values 0 … ``top``."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as functional

from hotlap.pack.augment.draw import between, chosen, need_floats, per_sample

__all__ = ["clahe", "colour", "motion_blur"]

_LUMA = (0.299, 0.587, 0.114)
"""ITU-R BT.601, as torchvision and Pillow have it."""
_LEVELS = 256


def _grey(images: torch.Tensor) -> torch.Tensor:
    if images.shape[1] == 1:
        return images
    weights = torch.tensor(_LUMA, dtype=images.dtype, device=images.device).view(1, 3, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def colour(images: torch.Tensor, generator: torch.Generator, brightness: float = 0.0, contrast: float = 0.0,
           saturation: float = 0.0, top: float = 255.0) -> torch.Tensor:  # fmt: skip
    """Colour jitter: factors from [max(0, 1 - v), 1 + v] for brightness, then contrast, then saturation."""
    need_floats(images=images)

    def blend(one: torch.Tensor, other: torch.Tensor | float, amount: float) -> torch.Tensor:
        factor = per_sample(between(images, max(0.0, 1 - amount), 1 + amount, generator), images).to(images.dtype)
        return (factor * one + (1 - factor) * other).clamp(0, top)

    if brightness:
        images = blend(images, 0.0, brightness)
    if contrast:
        images = blend(images, _grey(images).mean((1, 2, 3), keepdim=True), contrast)
    if saturation and images.shape[1] == 3:
        images = blend(images, _grey(images), saturation)
    return images


def motion_blur(images: torch.Tensor, share: float, generator: torch.Generator, size: int = 7) -> torch.Tensor:
    """With probability ``share``, smear along a line ``size`` pixels long at a random angle."""
    need_floats(images=images)
    if size % 2 == 0:
        raise ValueError(f"the size of a blur is odd, not {size}")
    hit = chosen(images, share, generator)
    angle = between(images, 0.0, math.pi, generator)
    at = torch.arange(size, device=images.device, dtype=torch.float32) - size // 2
    across = (at[None, :, None] * angle.cos()[:, None, None] - at[None, None, :] * angle.sin()[:, None, None]).abs()
    along = (at[None, :, None] * angle.sin()[:, None, None] + at[None, None, :] * angle.cos()[:, None, None]).abs()
    kernel = (1 - across).clamp_min(0) * (along <= size / 2)  # a line one pixel wide, its edges soft
    only = torch.zeros_like(kernel)
    only[:, size // 2, size // 2] = 1
    kernel = torch.where(per_sample(hit, kernel), kernel / kernel.sum((1, 2), keepdim=True), only)
    batch, channels, height, width = images.shape
    weights = kernel.to(images.dtype).repeat_interleave(channels, 0)[:, None]
    edge = size // 2
    padded = functional.pad(images, (edge, edge, edge, edge), mode="replicate").reshape(
        1, batch * channels, height + 2 * edge, -1
    )
    return functional.conv2d(padded, weights, groups=batch * channels).view(batch, channels, height, width)


def clahe(images: torch.Tensor, share: float, generator: torch.Generator, clip: float = 2.0,
          tiles: int = 8, top: float = 255.0) -> torch.Tensor:  # fmt: skip
    """With probability ``share``, contrast-limited adaptive histogram equalisation of each channel.

    ``tiles`` x ``tiles`` histograms of 256 levels, cut at ``clip`` times their mean height; the excess is spread evenly
    and each pixel mapped by the four nearest tiles, bilinearly. Height and width must be multiples of ``tiles``.
    """
    need_floats(images=images)
    batch, channels, height, width = images.shape
    if height % tiles or width % tiles:
        raise ValueError(f"images of {(height, width)} cannot be cut into {tiles} x {tiles} tiles")
    hit = chosen(images, share, generator)
    levels = (images * ((_LEVELS - 1) / top)).round().long().clamp(0, _LEVELS - 1)
    tall, wide = height // tiles, width // tiles
    line, column = (torch.arange(n, device=images.device) for n in (height, width))
    tile = (line // tall)[:, None] * tiles + (column // wide)[None, :]
    plane = torch.arange(batch * channels, device=images.device).view(batch, channels, 1, 1) * tiles * tiles
    counts = torch.zeros(batch * channels * tiles * tiles * _LEVELS, device=images.device)
    where = ((plane + tile) * _LEVELS + levels).reshape(-1)
    counts.scatter_add_(0, where, torch.ones_like(where, dtype=counts.dtype))
    histogram = counts.view(-1, _LEVELS)
    limit = max(1.0, clip * tall * wide / _LEVELS)
    excess = (histogram - limit).clamp_min(0).sum(1, keepdim=True)
    table = ((histogram.clamp_max(limit) + excess / _LEVELS).cumsum(1) * (top / (tall * wide))).view(-1)

    def neighbours(at: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        place = (at + 0.5) / size - 0.5
        low = place.floor()
        return low.long().clamp(0, tiles - 1), (low.long() + 1).clamp(0, tiles - 1), (place - low).to(images.dtype)

    (up, down, v), (left, right, h) = neighbours(line, tall), neighbours(column, wide)

    def mapped(rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        found = table[(plane + rows[:, None] * tiles + columns[None, :]) * _LEVELS + levels]
        return found.to(images.dtype)

    h, v = h[None, :], v[:, None]
    upper = (1 - h) * mapped(up, left) + h * mapped(up, right)
    lower = (1 - h) * mapped(down, left) + h * mapped(down, right)
    return torch.where(per_sample(hit, images), ((1 - v) * upper + v * lower).clamp(0, top), images)
