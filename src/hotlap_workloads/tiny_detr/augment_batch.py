"""CLAHE and motion blur for a whole batch on the device, with the same law as sample by sample.

One difference: the tiles of CLAHE cover the padded image, not the image.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from hotlap.pack.augment import clahe, motion_blur
from hotlap_workloads.tiny_detr.augment_sample import BLUR_PX, BLUR_SHARE, CLAHE_SHARE, CLIP, TILES

__all__ = ["BatchAugment"]


class BatchAugment:
    """Images (batch, 3, height, width) as floats 0 to 255, changed in place; draws from torch's random numbers."""

    def __init__(self, use_clahe: bool, use_blur: bool) -> None:
        self.use_clahe, self.use_blur = use_clahe, use_blur

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        generator = _generator(images.device)
        with torch.autocast(images.device.type, enabled=False):  # bf16 has fewer levels than a byte
            if self.use_clahe:
                _some(images, CLAHE_SHARE, lambda part: clahe(part, 1.0, generator, CLIP, TILES))
            if self.use_blur:
                _some(images, BLUR_SHARE, lambda part: motion_blur(part, 1.0, generator, BLUR_PX))
        return images


def _some(images: Tensor, share: float, change: Callable[[Tensor], Tensor]) -> None:
    """Only the chosen images are computed. They are chosen on the host, so that it need not wait for the device."""
    rows = (torch.rand(len(images)) < share).nonzero().flatten()
    if len(rows):
        rows = rows.to(images.device, non_blocking=True)
        images[rows] = change(images[rows])


def _generator(device: torch.device) -> torch.Generator:
    """The one that a checkpoint saves."""
    return torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else torch.default_generator
