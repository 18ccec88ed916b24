"""Boxes as tensors: from middle and size to corners, and how well two boxes agree."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["corners", "giou"]


def corners(boxes: Tensor) -> Tensor:
    """(…, 4): middle x, middle y, width, height to left, top, right, bottom."""
    middle, half = boxes[..., :2], boxes[..., 2:] / 2
    return torch.cat([middle - half, middle + half], dim=-1)


def giou(a: Tensor, b: Tensor) -> Tensor:
    """Generalised intersection over union, -1 to 1, of boxes given by corners (Rezatofighi et al. 2019).

    Leading dimensions broadcast: (n, 1, 4) with (m, 4) gives all pairs. One of the two boxes must have an area.
    """
    sides_a, sides_b = a[..., 2:] - a[..., :2], b[..., 2:] - b[..., :2]
    inner = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0)
    outer = torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])
    overlap, hull = _product(inner), _product(outer)
    union = _product(sides_a) + _product(sides_b) - overlap
    return overlap / union - (hull - union) / hull


def _product(sides: Tensor) -> Tensor:
    """Areas. The backward of prod() counts zeros, for which the host waits."""
    return sides[..., 0] * sides[..., 1]
