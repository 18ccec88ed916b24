"""IResNet: the residual network of face recognition (Duta et al. 2020; Deng et al. 2019).

Its parts have the names of InsightFace's code, so published ``backbone.pth`` files load as they are.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["DEPTHS", "IResNet", "folded", "halved"]

DEPTHS = {"iresnet18": (2, 2, 2, 2), "iresnet50": (3, 4, 14, 3), "iresnet100": (3, 13, 30, 3)}
"""Blocks of the four stages."""
CHANNELS = (64, 64, 128, 256, 512)
"""Of the stem and the four stages."""


class Block(nn.Module):
    """Norm, 3x3, norm, PReLU, 3x3 (with the stride), norm; nothing after the sum."""

    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, channels, 3, 1, 1, bias=False)
        self.bn2: nn.Module = nn.BatchNorm2d(channels)
        self.prelu = nn.PReLU(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, 1, bias=False)
        self.bn3: nn.Module = nn.BatchNorm2d(channels)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or inputs != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.prelu(self.bn2(self.conv1(self.bn1(x))))
        y = self.bn3(self.conv2(y))
        out: Tensor = y + (x if self.downsample is None else self.downsample(x))
        return out


class IResNet(nn.Module):
    """Images (batch, 3, size, size) in -1 to 1 to embeddings (batch, dim), not normalised.

    ``width`` is a factor of all channels; published networks have 1, and images of 112.
    """

    def __init__(self, name: str, dim: int = 512, size: int = 112, width: float = 1.0) -> None:
        super().__init__()
        stem, *channels = (max(8, round(width * c / 8) * 8) for c in CHANNELS)
        self.conv1 = nn.Conv2d(3, stem, 3, 1, 1, bias=False)
        self.bn1: nn.Module = nn.BatchNorm2d(stem)
        self.prelu = nn.PReLU(stem)
        layers, inputs, side = [], stem, size
        for depth, outputs in zip(DEPTHS[name], channels, strict=True):
            blocks = [Block(inputs if i == 0 else outputs, outputs, 2 if i == 0 else 1) for i in range(depth)]
            layers.append(nn.Sequential(*blocks))
            inputs, side = outputs, (side + 1) // 2
        self.layer1, self.layer2, self.layer3, self.layer4 = layers
        self.bn2 = nn.BatchNorm2d(inputs)
        self.fc = nn.Linear(inputs * side * side, dim)
        self.features: nn.Module = nn.BatchNorm1d(dim)
        self.features.weight.requires_grad = False  # the head normalises: a scale would learn nothing
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.normal_(module.weight, 0, 0.1)

    @property
    def stages(self) -> list[nn.Sequential]:
        """The four stages, first to last."""
        return [self.layer1, self.layer2, self.layer3, self.layer4]

    def forward(self, x: Tensor) -> Tensor:
        x = self.prelu(self.bn1(self.conv1(x)))
        for stage in self.stages:
            x = stage(x)
        x = self.bn2(x).flatten(1)
        with torch.autocast(x.device.type, enabled=False):  # the last layer in fp32, as InsightFace has it
            embedding: Tensor = self.features(self.fc(x.to(self.fc.weight.dtype)))
        return embedding


def folded(net: IResNet) -> IResNet:
    """A copy for evaluation alone, with the norms behind convolutions and behind the last layer computed into them.

    The norm before a block's first convolution stays: its shift does not pass the zeros around the image unchanged.
    """
    net = copy.deepcopy(net).eval()
    net.conv1, net.bn1 = _fused(net.conv1, net.bn1), nn.Identity()
    for stage in net.stages:
        for block in stage:
            assert isinstance(block, Block)
            block.conv1, block.bn2 = _fused(block.conv1, block.bn2), nn.Identity()
            block.conv2, block.bn3 = _fused(block.conv2, block.bn3), nn.Identity()
            if block.downsample is not None:
                conv, norm = block.downsample
                assert isinstance(conv, nn.Conv2d)
                block.downsample = nn.Sequential(_fused(conv, norm))
    assert isinstance(net.features, nn.BatchNorm1d)
    net.fc, net.features = fuse_linear_bn_eval(net.fc, net.features), nn.Identity()
    return net


def halved(net: IResNet, dtype: torch.dtype) -> IResNet:
    """Weights of convolutions and activations as ``dtype``, in place; norms and the last layer stay fp32."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d | nn.PReLU):
            module.to(dtype)
    return net


def _fused(conv: nn.Conv2d, norm: nn.Module) -> nn.Conv2d:
    assert isinstance(norm, nn.BatchNorm2d)
    return fuse_conv_bn_eval(conv, norm)
