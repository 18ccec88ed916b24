"""Augmentation of spectrograms: neighbouring bands of each training sample are hidden."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["FrequencyMask"]


class FrequencyMask(nn.Module):
    """Features (batch, bands, frames) with 0 to ``most`` bands set to 0, in training alone.

    Each sample has its own width and place, both uniform, drawn from torch's random numbers (SpecAugment, Park et al.
    2019).
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        count, bands = x.shape[:2]
        width = torch.randint(min(self.most, bands) + 1, (count, 1), device=x.device)
        begin = (torch.rand(count, 1, device=x.device) * (bands - width + 1)).long()
        band = torch.arange(bands, device=x.device)
        hidden = (band >= begin) & (band < begin + width)
        return x.masked_fill(hidden[:, :, None], 0.0)
