"""Attention rollout (Abnar and Zuidema 2020): how much of each patch reaches the class token through all blocks.

Each block mixes tokens by A = r I + (1 - r) W, W the attention averaged over the heads; together they mix by the
product of all A, of which only the class token's row counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["rollout_by_matrices", "rollout_by_row", "top_patches"]


def rollout_by_matrices(maps: Sequence[Tensor], residual: float) -> Tensor:
    """(batch, tokens): as the formula is written. ``maps`` are (batch, tokens, tokens), the first block first."""
    skip = torch.eye(maps[0].shape[-1], dtype=maps[0].dtype, device=maps[0].device)
    product = residual * skip + (1 - residual) * maps[0]
    for weights in maps[1:]:
        product = (residual * skip + (1 - residual) * weights) @ product
    return product[:, 0]


def rollout_by_row(maps: Sequence[Tensor], residual: float) -> Tensor:
    """The same row from the last block down: a vector times a matrix each, instead of a matrix times a matrix."""
    row = torch.zeros_like(maps[-1][:, :1])
    row[:, :, 0] = 1
    for weights in reversed(maps):
        row = residual * row + (1 - residual) * row @ weights
    return row[:, 0]


def top_patches(row: Tensor, share: float) -> Tensor:
    """(batch, patches chosen): places among the tokens of the patches that reach the class token most."""
    patches = row[:, 1:]
    return patches.topk(max(1, round(share * patches.shape[1])), dim=1).indices + 1
