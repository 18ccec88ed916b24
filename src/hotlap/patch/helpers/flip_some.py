"""Mirroring of some of a batch's samples."""

from typing import Any

import torch

__all__ = ["flip_some"]


def flip_some(batch: Any, share: float, dimension: int) -> Any:
    """The batch with each sample mirrored along ``dimension``, or not, by a draw of its own."""
    chosen = torch.rand(len(batch), device=batch.device) < share
    return torch.where(chosen.view(-1, *[1] * (batch.dim() - 1)), batch.flip(dimension), batch)
