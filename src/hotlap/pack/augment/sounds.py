"""Sound batches [batch, samples] and spectrograms [batch, frequency, time]: crop, noise, reverberation, masks."""

from __future__ import annotations

import torch

from hotlap.pack.augment.draw import between, chosen, need_floats, whole_below

__all__ = ["add_noise", "crop_sound", "mask_bands", "reverberate"]


def _windows(bank: torch.Tensor, which: torch.Tensor, begin: torch.Tensor, length: int) -> torch.Tensor:
    return bank[which[:, None], begin[:, None] + torch.arange(length, device=bank.device)]


def crop_sound(sounds: torch.Tensor, length: int, generator: torch.Generator) -> torch.Tensor:
    """A random stretch of ``length``, another for each sample."""
    if length > sounds.shape[-1]:
        raise ValueError(f"a stretch of {length} does not fit sounds of {sounds.shape[-1]}")
    begin = whole_below(sounds, sounds.shape[-1] - length + 1, generator)
    return _windows(sounds, torch.arange(len(sounds), device=sounds.device), begin, length)


def add_noise(sounds: torch.Tensor, bank: torch.Tensor, decibels: tuple[float, float], generator: torch.Generator,
              share: float = 1.0) -> torch.Tensor:  # fmt: skip
    """Noise at a signal-to-noise ratio drawn from ``decibels``: a stretch of a row of ``bank`` [n, length].

    A bank made once costs a copy per batch; drawing noise anew (``randn``) costs far more than loading.
    """
    need_floats(sounds=sounds, bank=bank)
    length = sounds.shape[-1]
    if bank.shape[-1] < length:
        raise ValueError(f"the noises are {bank.shape[-1]} long, the sounds {length}")
    hit = chosen(sounds, share, generator)
    ratio = 10 ** (between(sounds, *decibels, generator) / 10)
    which = whole_below(sounds, len(bank), generator)
    noise = _windows(bank, which, whole_below(sounds, bank.shape[-1] - length + 1, generator), length)
    power = sounds.square().mean(-1) / (noise.square().mean(-1).clamp_min(1e-12) * ratio)
    return sounds + noise * (power.sqrt() * hit)[:, None]


def reverberate(
    sounds: torch.Tensor, rooms: torch.Tensor, generator: torch.Generator, share: float = 1.0
) -> torch.Tensor:
    """Convolve with a random impulse response of ``rooms`` [n, length] by FFT; the power of the sound is kept."""
    need_floats(sounds=sounds, rooms=rooms)
    hit = chosen(sounds, share, generator)
    room = rooms[whole_below(sounds, len(rooms), generator)]
    length, whole = sounds.shape[-1], sounds.shape[-1] + rooms.shape[-1] - 1
    size = 1 << (whole - 1).bit_length()  # powers of two are what FFTs like best
    wet = torch.fft.irfft(torch.fft.rfft(sounds, size) * torch.fft.rfft(room, size), size)[..., :length]
    gain = (sounds.square().mean(-1) / wet.square().mean(-1).clamp_min(1e-12)).sqrt()
    return torch.where(hit[:, None], wet * gain[:, None], sounds)


def mask_bands(spectrograms: torch.Tensor, widest: tuple[int, int], generator: torch.Generator,
               value: float = 0.0) -> torch.Tensor:  # fmt: skip
    """SpecAugment: one band of frequencies and one stretch of time per sample, up to ``widest`` wide."""
    masked = torch.zeros_like(spectrograms, dtype=torch.bool)
    for axis, limit in zip((1, 2), widest, strict=True):
        size = spectrograms.shape[axis]
        width = whole_below(spectrograms, min(limit, size) + 1, generator)
        begin = whole_below(spectrograms, size - width + 1, generator)
        at = torch.arange(size, device=spectrograms.device)
        band = (at >= begin[:, None]) & (at < (begin + width)[:, None])
        masked |= band[:, :, None] if axis == 1 else band[:, None, :]
    return spectrograms.masked_fill(masked, value)
