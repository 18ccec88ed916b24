"""Transformer blocks that attend to their own tokens, or to others' (Vaswani et al. 2017; Dosovitskiy et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Attention", "Block"]


class Attention(nn.Module):
    """Multi-head attention of ``x`` to ``context`` (itself where there is none).

    ``wants_weights`` gives the softmax's weights too, averaged over the heads and outside the graph.
    """

    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def _queries_keys_values(self, x: Tensor, context: Tensor | None) -> list[Tensor]:
        """Each (batch, heads, tokens, width / heads)."""
        if context is None:
            parts = self.qkv(x).chunk(3, dim=-1)
        else:
            width = x.shape[-1]
            weight, bias = self.qkv.weight, self.qkv.bias
            query = F.linear(x, weight[:width], bias[:width])
            parts = (query, *F.linear(context, weight[width:], bias[width:]).chunk(2, dim=-1))
        return [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts]

    def forward(
        self, x: Tensor, context: Tensor | None = None, wants_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        query, key, value = self._queries_keys_values(x, context)
        mean = None
        if self.fused and not wants_weights:
            out = F.scaled_dot_product_attention(query, key, value)
        else:
            weights = (query * query.shape[-1] ** -0.5 @ key.transpose(-2, -1)).softmax(dim=-1)
            out = weights.to(value.dtype) @ value
            if wants_weights:
                mean = weights.detach().mean(dim=1, dtype=torch.float32)
        return self.proj(out.transpose(1, 2).flatten(2)), mean


class Mlp(nn.Module):
    """Two linear layers."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.fc2(F.gelu(self.fc1(x)))
        return out


class Block(nn.Module):
    """Norm, attention, skip; norm, two linear layers, skip. In training an image skips each part with ``drop``."""

    def __init__(self, width: int, heads: int, hidden: int, drop: float, fused: bool) -> None:
        super().__init__()
        self.drop = drop
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads, fused)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = Mlp(width, hidden)

    def forward(
        self, x: Tensor, context: Tensor | None = None, wants_weights: bool = False, images: int = 1
    ) -> tuple[Tensor, Tensor | None]:
        """``images`` is how many images stand in a row of tokens: each skips for itself."""
        seen = None if context is None else self.norm1(context)
        out, weights = self.attn(self.norm1(x), seen, wants_weights)
        x = x + self._skipped(out, images)
        return x + self._skipped(self.mlp(self.norm2(x)), images), weights

    def _skipped(self, out: Tensor, images: int) -> Tensor:
        """Stochastic depth (Huang et al. 2016): the branches kept are scaled up for those left out."""
        if not self.training or self.drop == 0:
            return out
        kept = torch.rand(out.shape[0], images, 1, 1, device=out.device) >= self.drop
        by_image = out.view(out.shape[0], images, -1, out.shape[-1])
        return (by_image * (kept / (1 - self.drop)).to(out.dtype)).flatten(1, 2)
