"""Random numbers for a batch: one per sample, on the batch's device, from a generator that the caller owns.

So an augmentation is reproducible (seed the generator) and leaves the training's own random state alone.
"""

from __future__ import annotations

import torch

__all__ = ["between", "chosen", "need_floats", "per_sample", "whole_below"]


def need_floats(**batches: torch.Tensor) -> None:
    """ValueError where one of them holds whole numbers: fractions would be cut off, and sums would overflow."""
    for name, batch in batches.items():
        if not batch.is_floating_point():
            raise ValueError(f"{name} are {batch.dtype}: convert them first, as in {name}.float()")


def between(batch: torch.Tensor, low: float, high: float, generator: torch.Generator) -> torch.Tensor:
    """Uniform in [low, high), one per sample."""
    return low + (high - low) * torch.rand(len(batch), generator=generator, device=batch.device)


def chosen(batch: torch.Tensor, share: float, generator: torch.Generator) -> torch.Tensor:
    """True for each sample with probability ``share``."""
    return torch.rand(len(batch), generator=generator, device=batch.device) < share


def whole_below(batch: torch.Tensor, limit: int | torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Uniform whole numbers in [0, limit), one per sample."""
    uniform = torch.rand(len(batch), generator=generator, device=batch.device, dtype=torch.float64)
    return (uniform * limit).long()


def per_sample(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """``values`` [batch] in a shape that broadcasts over ``like`` [batch, …]."""
    return values.view(-1, *[1] * (like.dim() - 1))
