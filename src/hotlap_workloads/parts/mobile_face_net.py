"""MobileFaceNet (Chen et al. 2018), as the distillation papers use it, with embeddings of 512."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["MobileFaceNet"]


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """Convolution, norm, PReLU: the first two alone make the linear form."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs), nn.PReLU(outputs)]


class Bottleneck(nn.Module):
    """1x1 to ``inside`` channels, 3x3 each channel by itself, 1x1 back without activation; with or without a sum."""

    def __init__(self, inputs: int, outputs: int, inside: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            *_conv(inputs, inside, 1), *_conv(inside, inside, 3, stride, inside), *_conv(inside, outputs, 1)[:2]
        )
        self.sums = stride == 1

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.path(x)
        return x + y if self.sums else y


class MobileFaceNet(nn.Module):
    """Images (batch, 3, size, size) in -1 to 1 to embeddings (batch, dim), not normalised.

    The last map is weighted place by place for each channel, where other networks average (global depthwise
    convolution). ``width`` is a factor of all channels.
    """

    def __init__(self, dim: int = 512, size: int = 112, width: float = 1.0) -> None:
        super().__init__()
        c64, c128, c256, c512 = (max(8, round(width * c / 8) * 8) for c in (64, 128, 256, 512))
        side = size
        for _ in range(4):
            side = (side + 1) // 2
        self.stem = nn.Sequential(*_conv(3, c64, 3, 2), *_conv(c64, c64, 3, 1, c64))
        self.stages = nn.ModuleList(
            [
                _stage(c64, c64, c128, c128, 4),
                _stage(c64, c128, c256, c256, 6),
                _stage(c128, c128, c512, c256, 2),
            ]
        )
        self.last = nn.Sequential(
            *_conv(c128, c512, 1), nn.Conv2d(c512, c512, side, groups=c512, bias=False), nn.BatchNorm2d(c512)
        )
        self.embed = nn.Linear(c512, dim, bias=False)
        self.norm = nn.BatchNorm1d(dim, affine=False)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        x = self.last(x).flatten(1)
        with torch.autocast(x.device.type, enabled=False):
            embedding: Tensor = self.norm(self.embed(x.float()))
        return embedding


def _stage(inputs: int, outputs: int, inside_first: int, inside: int, blocks: int) -> nn.Sequential:
    """One bottleneck that halves the sides, then ``blocks`` that keep them."""
    rest = [Bottleneck(outputs, outputs, inside, 1) for _ in range(blocks)]
    return nn.Sequential(Bottleneck(inputs, outputs, inside_first, 2), *rest)
