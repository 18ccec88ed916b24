"""Front ends that begin at the waveform: a bank of filters in time, rectified, and the largest of every 10 ms."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["RawWave", "band_passes", "band_peaks"]

STRIDE, PEAK_OF = 8, 20
"""Samples between two outputs of a filter, and outputs of which the largest is kept: 10 ms at 16 kHz."""


def band_passes(count: int, taps: int, rate_hz: int = 16_000) -> Tensor:
    """Ideal band-pass filters side by side on the mel scale, cut by a Hamming window: (count, taps), ``taps`` odd.

    Each is the difference of two low-passes 2 f/r sinc(2 f t/r) (SincNet, Ravanelli and Bengio 2018), not trained, as
    the anti-spoofing models on raw waveforms have it (RawNet2, Tak et al. 2021, arXiv:2011.01108).
    """
    top_mel = 2595 * torch.log10(torch.tensor(1 + rate_hz / 2 / 700, dtype=torch.float64))
    edges_hz = 700 * (10 ** (torch.linspace(0, 1, count + 1, dtype=torch.float64) * top_mel / 2595) - 1)
    at = torch.arange(taps, dtype=torch.float64) - (taps - 1) / 2
    cycles = 2 * edges_hz[:, None] / rate_hz
    low_passes = cycles * torch.sinc(cycles * at)
    window = torch.hamming_window(taps, periodic=False, dtype=torch.float64)
    return ((low_passes[1:] - low_passes[:-1]) * window).float()


def band_peaks(wave: Tensor, filters: Tensor) -> Tensor:
    """(batch, samples) to (batch, filters, frames): log of the largest magnitude of each filter in every 10 ms."""
    out = F.conv1d(wave[:, None], filters[:, None], stride=STRIDE, padding=filters.shape[1] // 2)
    return torch.log(F.max_pool1d(out.abs(), PEAK_OF) + 1e-4)


class RawWave(nn.Module):
    """The bank as a layer. The filters are fixed band-passes, or weights that are trained (``learned``).

    In fp32: the filters' quiet outputs stand beside loud ones.
    """

    filters: Tensor

    def __init__(self, count: int, taps: int, learned: bool) -> None:
        super().__init__()
        if learned:
            self.filters = nn.Parameter(torch.empty(count, taps))
            nn.init.kaiming_uniform_(self.filters, a=5**0.5)
        else:
            self.register_buffer("filters", band_passes(count, taps), persistent=False)

    def forward(self, wave: Tensor) -> Tensor:
        with torch.autocast(wave.device.type, enabled=False):
            return band_peaks(wave.float(), self.filters)
