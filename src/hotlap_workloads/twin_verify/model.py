"""DCAL: a vision transformer with self-attention, global-local and pair-wise cross-attention (Zhu et al. 2022)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hotlap_workloads.twin_verify.blocks import Block
from hotlap_workloads.twin_verify.rollout import rollout_by_matrices, rollout_by_row, top_patches
from hotlap_workloads.twin_verify.settings import TwinSettings

__all__ = ["DCAL", "PairHead"]


class DCAL(nn.Module):
    """Images (batch, 3, size, size), normalised, to the features of SA and of GLCA, each (batch, width).

    Names of parameters are those of common vision transformers: patch_embed, cls_token, pos_embed, blocks, norm.
    """

    without_decay = ("cls_token", "pos_embed")

    def __init__(self, s: TwinSettings) -> None:
        super().__init__()
        self.share, self.residual, self.pwca_blocks = s.local_share, s.rollout_residual, s.pwca_blocks
        self.by_row = s.branches == "joint"
        self.patch_embed = nn.Conv2d(3, s.width, s.patch, s.patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, s.width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + (s.image_size // s.patch) ** 2, s.width))
        fused = s.attention == "fused"
        drops = [s.stochastic_depth * i / max(1, s.sa_blocks - 1) for i in range(s.sa_blocks)]
        self.blocks = nn.ModuleList(Block(s.width, s.heads, s.mlp, drop, fused) for drop in drops)
        self.glca = nn.ModuleList(
            Block(s.width, s.heads, s.mlp, s.stochastic_depth, fused) for _ in range(s.glca_blocks)
        )
        self.norm = nn.LayerNorm(s.width, eps=1e-6)
        self.norm_glca = nn.LayerNorm(s.width, eps=1e-6)
        self.apply(_begin)
        for token in (self.cls_token, self.pos_embed):
            nn.init.trunc_normal_(token, std=0.02)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        return self.features(self.tokens(images))

    def tokens(self, images: Tensor) -> Tensor:
        """(batch, 1 + patches, width): the class token first."""
        patches = self.patch_embed(images).flatten(2).transpose(1, 2)
        return torch.cat([self.cls_token.expand(len(patches), -1, -1), patches], 1) + self.pos_embed

    def features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """SA and GLCA of tokens."""
        maps = []
        for block in self.blocks:
            x, weights = block(x, None, True)
            maps.append(weights)
        local = self.local(x, maps)
        for block in self.glca:
            local, _ = block(local, x)
        return self.norm(x[:, 0]), self.norm_glca(local[:, 0])

    def local(self, x: Tensor, maps: list[Tensor]) -> Tensor:
        """The class token and the patches that matter most."""
        rollout = rollout_by_row if self.by_row else rollout_by_matrices
        with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
            chosen = top_patches(rollout(maps, self.residual), self.share)
        patches = x.gather(1, chosen.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
        return torch.cat([x[:, :1], patches], 1)

    def pwca_each(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """PWCA as it is written: the queries of one image, keys and values of both, one image after the other."""
        for block in self.blocks[: self.pwca_blocks]:
            of_left, _ = block(left, torch.cat([left, right], 1))
            of_right, _ = block(right, torch.cat([right, left], 1))
            left, right = of_left, of_right
        return self.norm(left[:, 0]), self.norm(right[:, 0])

    def pwca_joint(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """The same: both images asking both images is self-attention over the tokens of both in a row."""
        x = torch.cat([left, right], 1)
        for block in self.blocks[: self.pwca_blocks]:
            x, _ = block(x, None, False, 2)
        return self.norm(x[:, 0]), self.norm(x[:, left.shape[1]])


class PairHead(nn.Module):
    """Two features to a logit: above 0 for the same person. The order of the two does not matter."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, 1)
        self.apply(_begin)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """In fp32: twins differ by little."""
        with torch.autocast(left.device.type, enabled=False):
            left, right = left.float(), right.float()
            compared = torch.cat([(left - right).abs(), left * right], dim=1)
            logit: Tensor = self.out(nn.functional.gelu(self.hidden(compared)))[:, 0]
            return logit


def _begin(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)
