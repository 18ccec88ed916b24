"""Front ends against a direct transcription of their definitions into numpy; the mask against its law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.fft import dct

from hotlap_workloads.anti_spoof.model import make_front_end
from hotlap_workloads.anti_spoof.settings import SpoofSettings
from hotlap_workloads.parts.frequency_mask import FrequencyMask
from hotlap_workloads.parts.lfcc import LFCC, cosine_transform, linear_filters
from hotlap_workloads.parts.raw_wave import RawWave, band_passes, band_peaks
from hotlap_workloads.parts.spectrogram import LogMel


def noise(samples: int = 4000) -> torch.Tensor:
    return 0.3 * torch.randn(1, samples, generator=torch.Generator().manual_seed(0))


def test_lfcc_by_the_definition() -> None:
    got = LFCC(20)(noise())[0].numpy()
    x = noise()[0].numpy().astype(np.float64)
    x[1:] = x[1:] - 0.97 * x[:-1].copy()
    x = np.pad(x, 256)
    window = np.pad(0.54 - 0.46 * np.cos(2 * np.pi * np.arange(320) / 320), 96)
    power = np.stack([np.abs(np.fft.rfft(x[i * 160 : i * 160 + 512] * window)) ** 2 for i in range(26)])
    edges = np.linspace(0, 8000, 22)
    at = np.linspace(0, 8000, 257)
    filters = np.zeros((20, 257))
    for band, (low, centre, high) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        filters[band] = np.interp(at, [low, centre, high], [0.0, 1.0, 0.0], left=0, right=0)
    eps = np.finfo(np.float32).eps
    still = dct(np.log10(power @ filters.T + eps), type=2, norm="ortho")
    still[:, 0] = np.log10(power.sum(1) / 512 + eps)

    def change(rows: np.ndarray) -> np.ndarray:
        out = np.empty_like(rows)
        for t in range(len(rows)):
            out[t] = rows[min(t + 1, len(rows) - 1)] - rows[max(t - 1, 0)]
        return out

    wanted = np.concatenate([still, change(still), change(change(still))], axis=1).T
    assert got.shape == (60, 26)
    np.testing.assert_allclose(got, wanted, atol=2e-4)


def test_log_mel_keeps_the_level_of_each_band() -> None:
    plain, normed = LogMel(40, normalise=False)(noise()), LogMel(40)(noise())
    mean, deviation = plain.mean(2, keepdim=True), plain.var(2, keepdim=True, correction=0).add(1e-5).sqrt()
    torch.testing.assert_close((plain - mean) / deviation, normed)
    assert mean.flatten().std() > 0.5


def test_filters_and_transform() -> None:
    assert linear_filters(20, 257).sum(0)[13:-13].numpy() == pytest.approx(1.0, abs=1e-6)  # triangles share each bin
    matrix = cosine_transform(20).double()
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(20, dtype=torch.float64), atol=1e-6, rtol=0)


def test_band_passes_by_the_definition() -> None:
    got = band_passes(70, 129).double().numpy()
    mels = np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 71)
    edges = 700 * (10 ** (mels / 2595) - 1)
    t = np.arange(-64, 65)
    for band in range(70):
        high = 2 * edges[band + 1] / 16000 * np.sinc(2 * edges[band + 1] * t / 16000)
        low = 2 * edges[band] / 16000 * np.sinc(2 * edges[band] * t / 16000)
        np.testing.assert_allclose(got[band], np.hamming(129) * (high - low), atol=1e-7)


def test_each_band_passes_its_own_frequencies() -> None:
    filters = band_passes(16, 513).double().numpy()
    response = np.abs(np.fft.rfft(filters, 16_000))
    mels = np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 17)
    edges = 700 * (10 ** (mels / 2595) - 1)
    for band in range(3, 16):
        middle = int((edges[band] + edges[band + 1]) / 2)
        assert response[band, middle] == pytest.approx(1.0, abs=0.02) and response[band - 2, middle] < 0.02


def test_band_peaks_by_the_definition() -> None:
    filters = band_passes(8, 65)
    got = band_peaks(noise(1000), filters)[0].double().numpy()
    x = np.pad(noise(1000)[0].double().numpy(), 32)
    outputs = np.array([[x[i * 8 : i * 8 + 65] @ f for i in range(125)] for f in filters.double().numpy()])
    wanted = np.log(np.abs(outputs)[:, :120].reshape(8, 6, 20).max(2) + 1e-4)
    assert got.shape == (8, 6)
    np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_only_learned_filters_are_trained() -> None:
    assert not list(RawWave(8, 65, learned=False).parameters())
    front = RawWave(8, 65, learned=True)
    front(noise()).square().sum().backward()
    assert front.filters.grad is not None and front.filters.grad.abs().sum() > 0


@pytest.mark.parametrize("front_end", ["log_mel", "lfcc", "sinc", "conv"])
def test_front_ends_give_the_rows_they_promise_in_fp32(front_end: str) -> None:
    s = replace(SpoofSettings(), front_end=front_end)  # type: ignore[arg-type]
    front = make_front_end(s).eval()
    waves = torch.cat([noise(8000), 0.1 * noise(8000)])
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        mixed = front(waves)
    with torch.no_grad():
        plain = front(waves)
        alone = front(waves[1:])
    assert plain.shape[:2] == (2, s.features) and plain.shape[2] in (50, 51) and torch.isfinite(plain).all()
    assert mixed.dtype == torch.float32 and torch.equal(mixed, plain)
    torch.testing.assert_close(plain[1:], alone, atol=1e-4, rtol=1e-4)


def test_the_mask_keeps_to_its_law() -> None:
    torch.manual_seed(0)
    mask = FrequencyMask(10)
    x = torch.ones(4000, 40, 3)
    out = mask(x)
    hidden = out[:, :, 0] == 0
    assert torch.equal(out[:, :, 0] == 0, out[:, :, 2] == 0) and x.eq(1).all()
    widths = hidden.sum(1)
    assert widths.min() == 0 and widths.max() == 10
    assert np.bincount(widths.numpy()).std() < 40  # 364 of each width, give or take 18
    runs = (hidden[:, 1:] & ~hidden[:, :-1]).sum(1) + hidden[:, 0]
    assert torch.equal(runs > 0, widths > 0) and runs.max() == 1  # neighbours
    assert hidden[:, 0].any() and hidden[:, -1].any()
    assert torch.equal(mask.eval()(x), x)
