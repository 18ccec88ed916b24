"""ResNetSE34L, ResNetSE34V2 and ResNetSE152: log-mel, residual stages, pooling over time, embedding."""

from __future__ import annotations

import math

from torch import Tensor, nn

from hotlap_workloads.parts.pooling import AttentiveStatistics, SelfAttentive
from hotlap_workloads.parts.se_resnet import Basic, Bottleneck, stages
from hotlap_workloads.parts.spectrogram import LogMel
from hotlap_workloads.speaker_verify.settings import SpeakerSettings

__all__ = ["SpeakerNet"]

DEPTHS = {"ResNetSE34L": (3, 4, 6, 3), "ResNetSE34V2": (3, 4, 6, 3), "ResNetSE152": (3, 8, 36, 3)}
CHANNELS = {"ResNetSE34L": (16, 32, 64, 128), "ResNetSE34V2": (32, 64, 128, 256), "ResNetSE152": (32, 64, 128, 256)}
STRIDES = {"ResNetSE34L": (1, 2, 2, 1), "ResNetSE34V2": (1, 2, 2, 2), "ResNetSE152": (1, 2, 2, 2)}


class SpeakerNet(nn.Module):
    """Waveform (batch, samples) at 16 kHz to embedding (batch, ``embedding``), not normalised.

    The light network halves the bands in its first convolution and averages over what bands are left; the others keep
    the bands as channels.
    """

    def __init__(self, s: SpeakerSettings) -> None:
        super().__init__()
        light = s.model == "ResNetSE34L"
        block = Bottleneck if s.model == "ResNetSE152" else Basic
        channels = [max(8, round(s.width * c / 8) * 8) for c in CHANNELS[s.model]]
        self.features = LogMel(s.mels)
        first = nn.Conv2d(1, channels[0], 7, (2, 1), 3, bias=False) if light else nn.Conv2d(1, channels[0], 3, 1, 1)
        norm = nn.BatchNorm2d(channels[0])
        self.stem = nn.Sequential(first, norm, nn.ReLU()) if light else nn.Sequential(first, nn.ReLU(), norm)
        self.stages = nn.ModuleList(stages(block, DEPTHS[s.model], channels, STRIDES[s.model]))
        self.average_bands = light
        frames = channels[-1] * block.expansion * (1 if light else s.mels // 8)
        self.pooling = SelfAttentive(frames) if s.pooling == "SAP" else AttentiveStatistics(frames)
        self.embed = nn.Linear(self.pooling.outputs, s.embedding)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, wave: Tensor) -> Tensor:
        x = self.stem(self.features(wave).unsqueeze(1))
        for stage in self.stages:
            x = stage(x)
        x = x.mean(dim=2) if self.average_bands else x.flatten(1, 2)
        embedding: Tensor = self.embed(self.pooling(x))
        return embedding


def samples_of(seconds: float) -> int:
    """Samples of a crop at 16 kHz."""
    return math.ceil(round(seconds * 16_000, 3))  # 2.015 s are 32,240 samples and a rounding error
