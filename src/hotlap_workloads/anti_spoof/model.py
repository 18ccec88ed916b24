"""Front end, SE-ResNet, pooling over time, two classes."""

from __future__ import annotations

from torch import Tensor, autocast, nn

from hotlap_workloads.anti_spoof.settings import SpoofSettings
from hotlap_workloads.parts.frequency_mask import FrequencyMask
from hotlap_workloads.parts.lfcc import LFCC
from hotlap_workloads.parts.phased_conv import PhasedConv2d
from hotlap_workloads.parts.pooling import AttentiveStatistics, SelfAttentive
from hotlap_workloads.parts.raw_wave import RawWave
from hotlap_workloads.parts.se_resnet import Basic, Bottleneck, stages
from hotlap_workloads.parts.spectrogram import LogMel

__all__ = ["SpoofNet", "make_front_end"]

DEPTHS = {"SEResNet18": (2, 2, 2, 2), "SEResNet34": (3, 4, 6, 3), "SEResNet50": (3, 4, 6, 3)}
CHANNELS, STRIDES = (16, 32, 64, 128), (1, 2, 2, 2)


def make_front_end(s: SpoofSettings) -> nn.Module:
    """Waves (batch, samples) in -1 to 1 to features (batch, bands, frames)."""
    if s.front_end == "log_mel":
        return LogMel(s.count, normalise=False)  # attacks betray themselves in the mean spectrum too
    if s.front_end == "lfcc":
        return LFCC(s.count)
    return RawWave(s.count, s.taps, learned=s.front_end == "conv")


class SpoofNet(nn.Module):
    """Waves (batch, samples), int16 or in -1 to 1, or features (batch, bands, frames), to two logits: spoof, bona fide.

    Stem, stages and channels are those of ASSERT (Lai et al. 2019, arXiv:1904.01120), whose network was among the best
    of ASVspoof 2019 on replayed speech. Each band is normed over the training set, so that a hidden band is a mean one.
    """

    def __init__(self, s: SpoofSettings) -> None:
        super().__init__()
        block = Bottleneck if s.model == "SEResNet50" else Basic
        channels = [max(8, round(s.width * c / 8) * 8) for c in CHANNELS]
        self.front_end = make_front_end(s)
        self.norm = nn.BatchNorm1d(s.features)
        self.mask = FrequencyMask(s.freq_mask_most) if s.freq_mask else nn.Identity()
        phased = s.stem_gradient == "by_phase"
        self.stem = nn.Sequential(
            PhasedConv2d(1, channels[0], 7, 2, 3) if phased else nn.Conv2d(1, channels[0], 7, 2, 3, bias=False),
            nn.BatchNorm2d(channels[0]),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        self.stages = nn.ModuleList(stages(block, DEPTHS[s.model], channels, STRIDES))
        last = channels[-1] * block.expansion
        self.pooling = make_pooling(s.pooling, last)
        self.classify = nn.Linear(self.pooling.outputs, 2)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() == 2:
            x = self.front_end(x if x.is_floating_point() else x.float() / 32768)
        x = self.stem(self.mask(self.norm(x)).unsqueeze(1))
        for stage in self.stages:
            x = stage(x)
        x = self.pooling(x.mean(dim=2))
        with autocast(x.device.type, enabled=False):  # scores of 8 bits would be equal to each other
            logits: Tensor = self.classify(x.float())
        return logits


def make_pooling(name: str, channels: int) -> Mean | SelfAttentive | AttentiveStatistics:
    """Frames (batch, channels, time) to (batch, ``outputs``)."""
    if name == "mean":
        return Mean(channels)
    return SelfAttentive(channels) if name == "SAP" else AttentiveStatistics(channels)


class Mean(nn.Module):
    """The mean over time."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.outputs = channels

    def forward(self, x: Tensor) -> Tensor:
        return x.float().mean(dim=2)
