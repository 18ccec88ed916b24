"""Residual networks with squeeze and excitation (He et al. 2016; Hu et al. 2018) over spectrograms."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Basic", "Bottleneck", "Squeeze", "stages"]


class Squeeze(nn.Module):
    """Scales each channel by what a small network sees in the means of all channels."""

    def __init__(self, channels: int, reduction: int = 8) -> None:
        super().__init__()
        self.down = nn.Linear(channels, channels // reduction)
        self.up = nn.Linear(channels // reduction, channels)

    def forward(self, x: Tensor) -> Tensor:
        scale = F.relu(self.down(x.mean(dim=(2, 3))))
        scaled: Tensor = x * self.up(scale).sigmoid()[:, :, None, None]
        return scaled


class Basic(nn.Module):
    """Two 3x3 convolutions. Activation before the first norm, as the published speaker networks have it."""

    expansion = 1

    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.squeeze = Squeeze(channels)
        self.shortcut = _shortcut(inputs, channels, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(F.relu(self.conv1(x)))
        y = self.squeeze(self.norm2(self.conv2(y)))
        return F.relu(y + self.shortcut(x))


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1: the deep form, four times as wide at its end."""

    expansion = 4

    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, 4 * channels, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(4 * channels)
        self.squeeze = Squeeze(4 * channels)
        self.shortcut = _shortcut(inputs, 4 * channels, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        y = self.squeeze(self.norm3(self.conv3(y)))
        return F.relu(y + self.shortcut(x))


def stages(
    block: type[Basic] | type[Bottleneck], depths: Sequence[int], channels: Sequence[int], strides: Sequence[int]
) -> list[nn.Sequential]:
    """Stages of ``depths`` blocks; the first block of each has the stage's stride."""
    out, inputs = [], channels[0]
    for depth, width, stride in zip(depths, channels, strides, strict=True):
        blocks: list[nn.Module] = [block(inputs, width, stride)]
        inputs = width * block.expansion
        blocks += [block(inputs, width, 1) for _ in range(depth - 1)]
        out.append(nn.Sequential(*blocks))
    return out


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    if inputs == outputs and stride == 1:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
