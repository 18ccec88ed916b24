"""Linear-frequency cepstral coefficients of waveforms, in plain torch, whole batches at once."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["LFCC", "changes", "cosine_transform", "linear_filters"]


def linear_filters(count: int, bins: int) -> Tensor:
    """Triangles of equal width from 0 Hz to half the rate, each from one neighbour's centre to the other's."""
    edges = torch.linspace(0, bins - 1, count + 2, dtype=torch.float64)
    at = torch.arange(bins, dtype=torch.float64)
    low, centre, high = (edges[i : count + i, None] for i in range(3))
    return torch.minimum((at - low) / (centre - low), (high - at) / (high - centre)).clamp(min=0).float()


def cosine_transform(count: int) -> Tensor:
    """The orthonormal DCT-II as a matrix, (coefficients, filters)."""
    k, n = torch.arange(count, dtype=torch.float64)[:, None], torch.arange(count, dtype=torch.float64)
    matrix = math.sqrt(2 / count) * torch.cos(math.pi * k * (2 * n + 1) / (2 * count))
    matrix[0] /= math.sqrt(2)
    return matrix.float()


def changes(x: Tensor) -> Tensor:
    """Frame after minus frame before, along the last dimension; the ends are repeated."""
    padded = F.pad(x, (1, 1), mode="replicate")
    return padded[..., 2:] - padded[..., :-2]


class LFCC(nn.Module):
    """Waveform (batch, samples) to (batch, 3 ``count``, 1 + samples // hop): coefficients and their two changes.

    The front end of the ASVspoof 2021 baselines (Yamagishi et al. 2021, arXiv:2109.00537): pre-emphasis 0.97, Hamming
    window of 20 ms in an FFT of 512, hop 10 ms, as many coefficients as filters, the first replaced by the logarithm of
    the frame's energy. Always in fp32: logarithms of small energies do not survive bf16.
    """

    filters: Tensor
    transform: Tensor
    window: Tensor

    def __init__(self, count: int = 20, fft: int = 512, window: int = 320, hop: int = 160) -> None:
        super().__init__()
        self.fft, self.hop, self.window_length = fft, hop, window
        self.register_buffer("filters", linear_filters(count, fft // 2 + 1), persistent=False)
        self.register_buffer("transform", cosine_transform(count), persistent=False)
        self.register_buffer("window", torch.hamming_window(window), persistent=False)

    @torch.no_grad()
    def forward(self, wave: Tensor) -> Tensor:
        with torch.autocast(wave.device.type, enabled=False):
            wave = wave.float()
            emphasised = torch.cat([wave[:, :1], wave[:, 1:] - 0.97 * wave[:, :-1]], dim=1)
            spectrum = torch.stft(
                emphasised,
                self.fft,
                self.hop,
                self.window_length,
                self.window,
                pad_mode="constant",
                return_complex=True,
            )
            real, imaginary = spectrum.real, spectrum.imag  # as in spectrogram.py
            power = real * real + imaginary * imaginary
            least = torch.finfo(torch.float32).eps
            coefficients = self.transform @ torch.log10(self.filters @ power + least)
            energy = torch.log10(power.sum(dim=1, keepdim=True) / self.fft + least)
            still = torch.cat([energy, coefficients[:, 1:]], dim=1)
            first = changes(still)
            return torch.cat([still, first, changes(first)], dim=1)
