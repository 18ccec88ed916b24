"""Log-mel spectrograms of waveforms, in plain torch, whole batches at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["LogMel", "mel_filters"]


def mel_filters(bands: int, bins: int, rate_hz: int) -> Tensor:
    """Triangles on the HTK mel scale, (bands, bins): 2595 log10(1 + f / 700), from 0 Hz to half the rate."""
    top_mel = 2595 * torch.log10(torch.tensor(1 + rate_hz / 2 / 700, dtype=torch.float64))
    mels = torch.linspace(0, 1, bands + 2, dtype=torch.float64) * top_mel
    edges_hz = 700 * (10 ** (mels / 2595) - 1)
    bins_hz = torch.linspace(0, rate_hz / 2, bins, dtype=torch.float64)
    low, centre, high = (edges_hz[i : bands + i, None] for i in range(3))
    up, down = (bins_hz - low) / (centre - low), (high - bins_hz) / (high - centre)
    return torch.minimum(up, down).clamp(min=0).float()


class LogMel(nn.Module):
    """Waveform (batch, samples) to log-mel energies (batch, bands, 1 + samples // hop).

    With ``normalise``, each band of each recording has mean 0 and deviation 1 over time, which forgets the channel.
    Pre-emphasis 0.97, Hamming window of 25 ms in an FFT of 512, hop 10 ms: the front end of the VoxCeleb trainer
    (Chung et al. 2020, arXiv:2003.11982). Always in fp32: logarithms of small energies do not survive bf16.
    """

    filters: Tensor
    window: Tensor

    def __init__(
        self,
        bands: int,
        rate_hz: int = 16_000,
        fft: int = 512,
        window: int = 400,
        hop: int = 160,
        normalise: bool = True,
    ) -> None:
        super().__init__()
        self.fft, self.hop, self.window_length, self.normalise = fft, hop, window, normalise
        self.register_buffer("filters", mel_filters(bands, fft // 2 + 1, rate_hz), persistent=False)
        self.register_buffer("window", torch.hamming_window(window), persistent=False)

    @torch.no_grad()
    def forward(self, wave: Tensor) -> Tensor:
        with torch.autocast(wave.device.type, enabled=False):
            wave = wave.float()
            before = torch.cat([wave[:, 1:2], wave[:, :-1]], dim=1)
            spectrum = torch.stft(
                wave - 0.97 * before, self.fft, self.hop, self.window_length, self.window, return_complex=True
            )
            real, imaginary = spectrum.real, spectrum.imag  # strided, where a product is quicker than square()
            power = real * real + imaginary * imaginary
            logs = torch.log(self.filters @ power + 1e-6)
            if not self.normalise:
                return logs
            mean = logs.mean(dim=2, keepdim=True)
            deviation = logs.var(dim=2, keepdim=True, correction=0).add(1e-5).sqrt()
            return (logs - mean) / deviation
