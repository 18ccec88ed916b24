"""Batched augmentation against per-sample references: the same pixels for the same draws, draws of the right law."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import signal, stats

from hotlap.pack import augment


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(count: int, height: int = 24, width: int = 32, channels: int = 3) -> torch.Tensor:
    return torch.rand(count, channels, height, width, generator=seeded(5)) * 255


def law(values: Any, expected: Any) -> None:
    """Kolmogorov-Smirnov: not the law claimed, at one in 10,000."""
    assert stats.kstest(np.asarray(values), expected).pvalue > 1e-4


ALL: dict[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "crop": lambda x, g: augment.crop(x, (16, 16), g),
    "flip": lambda x, g: augment.flip(x, 0.5, g),
    "rotate": lambda x, g: augment.rotate(x, 30, g),
    "erase": lambda x, g: augment.erase(x, 0.5, g),
    "mixup": lambda x, g: augment.mixup(x, 0.4, g)[0],
    "colour": lambda x, g: augment.colour(x, g, 0.4, 0.4, 0.4),
    "motion_blur": lambda x, g: augment.motion_blur(x, 0.5, g),
    "clahe": lambda x, g: augment.clahe(x, 0.5, g),
    "add_noise": lambda x, g: augment.add_noise(x[:, 0, 0], x[:, 0, 1], (0, 20), g),
    "reverberate": lambda x, g: augment.reverberate(x[:, 0, 0], images(4)[:, 0, 1], g),
    "mask_bands": lambda x, g: augment.mask_bands(x[:, 0], (8, 8), g),
    "crop_sound": lambda x, g: augment.crop_sound(x[:, 0, 0], 9, g),
}


@pytest.mark.parametrize("name", ALL)
def test_seeded_each_sample_its_own_and_the_input_untouched(name: str) -> None:
    x = images(1).expand(32, -1, -1, -1).clone()
    before, state = x.clone(), torch.get_rng_state()
    a, b, c = ALL[name](x, seeded(1)), ALL[name](x, seeded(1)), ALL[name](x, seeded(2))
    assert torch.equal(a, b) and torch.equal(x, before) and torch.equal(state, torch.get_rng_state())
    if name == "mixup":  # of one picture with itself
        assert torch.allclose(a, x, atol=1e-3)
        return
    assert not torch.equal(a, c)
    assert len({tuple(sample.flatten().tolist()) for sample in a}) > 1, "samples must differ"


@pytest.mark.parametrize("name", ALL)
def test_whole_numbers_are_moved_but_not_computed_with(name: str) -> None:
    x = images(4).to(torch.uint8)
    if name in ("crop", "flip", "erase", "mask_bands", "crop_sound"):
        out = ALL[name](x, seeded())
        assert out.dtype == torch.uint8 and torch.equal(out.float(), ALL[name](x.float(), seeded()))
    else:
        with pytest.raises(ValueError, match=r"are torch.uint8: convert them first, as in \w+\.float\(\)"):
            ALL[name](x, seeded())


@pytest.mark.parametrize("name", ["add_noise", "reverberate"])
def test_banks_of_sounds_are_floats_too(name: str) -> None:
    bank = torch.ones((2, 50), dtype=torch.int16)
    with pytest.raises(ValueError, match=r"(bank|rooms) are torch\.int16"):
        if name == "add_noise":
            augment.add_noise(torch.ones(2, 40), bank, (0, 9), seeded())
        else:
            augment.reverberate(torch.ones(2, 40), bank, seeded())


def test_crop_is_a_uniform_window() -> None:
    x = torch.arange(24 * 32.0).view(1, 1, 24, 32).expand(4000, 2, -1, -1)
    out = augment.crop(x, (16, 16), seeded())
    first = out[:, 0, 0, 0].long()
    top, left = first // 32, first % 32
    assert all(torch.equal(out[k], x[k, :, top[k] : top[k] + 16, left[k] : left[k] + 16]) for k in range(50))
    for corner, free in ((top, 9), (left, 17)):
        assert stats.chisquare(np.bincount(corner, minlength=free)).pvalue > 1e-4
    assert abs(np.corrcoef(top, left)[0, 1]) < 0.06


def test_flip_has_its_probability() -> None:
    x = images(1).expand(4000, -1, -1, -1)
    out = augment.flip(x, 0.3, seeded())
    mirrored = (out == x.flip(-1)).all(3).all(2).all(1)
    assert ((out == x).all(3).all(2).all(1) ^ mirrored).all()
    assert stats.binomtest(int(mirrored.sum()), 4000, 0.3).pvalue > 1e-4


def test_rotation_turns_the_picture() -> None:
    from scipy import ndimage

    x = torch.from_numpy(ndimage.gaussian_filter(np.random.default_rng(0).random((1, 1, 40, 60)), (0, 0, 3, 3)))
    out = augment.rotate(x.expand(6, -1, -1, -1), 40, seeded(3))
    angles = -40 + 80 * torch.rand(6, generator=seeded(3))
    for turned, angle in zip(out, angles, strict=True):
        wanted = ndimage.rotate(x[0, 0].numpy(), float(angle), reshape=False, order=1)
        inner = np.s_[14:26, 20:40]
        assert np.abs(turned[0].numpy()[inner] - wanted[inner]).max() < 0.01 * np.ptp(wanted) + 1e-3


def test_erasing() -> None:
    x = torch.ones(4000, 1, 64, 64)
    out = augment.erase(x, 0.5, seeded(), area=(0.02, 0.1))
    gone = (out == 0).flatten(1).sum(1)
    hit = gone > 0
    assert stats.binomtest(int(hit.sum()), 4000, 0.5).pvalue > 1e-4
    assert abs(float((gone[hit] / 64**2).double().mean()) - 0.06) < 0.002
    for sample in out[hit][:50, 0]:
        lines, columns = (sample == 0).any(1).sum(), (sample == 0).any(0).sum()
        assert lines * columns == (sample == 0).sum(), "a rectangle"
        assert 0.25 < lines / columns < 4


def test_mixup_weights_are_beta() -> None:
    x = torch.arange(5000.0)[:, None].expand(-1, 3)
    mixed, partner, weight = augment.mixup(x, 0.4, seeded())
    law(weight, stats.beta(0.4, 0.4).cdf)
    assert sorted(partner.tolist()) == list(range(5000))
    assert torch.allclose(mixed[:, 0], weight * x[:, 0] + (1 - weight) * partner, rtol=1e-4, atol=0.1)


def test_colour_factors_are_uniform() -> None:
    grey = torch.full((4000, 1, 4, 4), 100.0)
    law(augment.colour(grey, seeded(), brightness=0.4)[:, 0, 0, 0] / 100, stats.uniform(0.6, 0.8).cdf)
    two = torch.tensor([80.0, 120.0]).view(1, 1, 1, 2).expand(4000, -1, -1, -1)
    out = augment.colour(two, seeded(), contrast=0.4)
    assert torch.allclose(out.mean((1, 2, 3)), torch.tensor(100.0), atol=1e-3)
    law((out[..., 1] - out[..., 0]).flatten() / 40, stats.uniform(0.6, 0.8).cdf)


def test_saturation_keeps_the_grey() -> None:
    x = images(8).clamp(60, 180)
    grey = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
    out = augment.colour(x, seeded(), saturation=0.3)
    assert torch.allclose((out * grey).sum(1), (x * grey).sum(1), atol=1e-2) and not torch.allclose(out, x, atol=1)


def test_blur_is_a_line_of_any_angle() -> None:
    point = torch.zeros(2000, 1, 15, 15)
    point[:, :, 7, 7] = 1
    out = augment.motion_blur(point, 0.7, seeded(), size=7)[:, 0]
    assert torch.allclose(out.sum((1, 2)), torch.tensor(1.0), atol=1e-5)
    smeared = out[:, 7, 7] < 0.99
    assert stats.binomtest(int(smeared.sum()), 2000, 0.7).pvalue > 1e-4
    y, x = torch.meshgrid(torch.arange(15.0) - 7, torch.arange(15.0) - 7, indexing="ij")
    o = out[smeared].double()
    xx, yy, xy = ((o * w).sum((1, 2)) for w in (x * x, y * y, x * y))
    angle = 0.5 * torch.atan2(2 * xy, xx - yy) % math.pi
    assert (xx + yy > 2.5).all() and ((xx * yy - xy**2) < 0.2 * (xx + yy) ** 2).all(), "long and thin"
    assert stats.chisquare(np.histogram(angle, 6, (0, math.pi))[0]).pvalue > 1e-4


def clahe_of_one(plane: np.ndarray, clip: float, tiles: int) -> np.ndarray:
    """The textbook's loops over tiles and pixels."""
    height, width = plane.shape
    tall, wide = height // tiles, width // tiles
    levels = np.round(plane).astype(int)
    tables = np.empty((tiles, tiles, 256))
    limit = max(1.0, clip * tall * wide / 256)
    for i in range(tiles):
        for j in range(tiles):
            counts = np.bincount(levels[i * tall : (i + 1) * tall, j * wide : (j + 1) * wide].ravel(), minlength=256)
            over = np.maximum(counts - limit, 0).sum()
            tables[i, j] = (np.minimum(counts, limit) + over / 256).cumsum() * 255 / (tall * wide)
    out = np.empty(plane.shape)
    for y in range(height):
        for x in range(width):
            v, h = (y + 0.5) / tall - 0.5, (x + 0.5) / wide - 0.5
            i, j = math.floor(v), math.floor(h)
            v, h = v - i, h - j
            at = [tables[min(max(a, 0), tiles - 1), min(max(b, 0), tiles - 1), levels[y, x]]
                  for a in (i, i + 1) for b in (j, j + 1)]  # fmt: skip
            out[y, x] = (1 - v) * ((1 - h) * at[0] + h * at[1]) + v * ((1 - h) * at[2] + h * at[3])
    return out


def test_clahe_equals_the_textbook() -> None:
    x = images(2, 24, 32, 2) * 0.3 + 40
    out = augment.clahe(x, 1.0, seeded(), clip=3.0, tiles=4)
    for b in range(2):
        for c in range(2):
            assert np.allclose(out[b, c].numpy(), clahe_of_one(x[b, c].numpy(), 3.0, 4), atol=1e-2)
    assert out.std() > 1.5 * x.std()
    with pytest.raises(ValueError, match="tiles"):
        augment.clahe(x, 1.0, seeded(), tiles=5)


def test_noise_has_the_ratio_asked_for() -> None:
    x, bank = torch.randn(3000, 400, generator=seeded(1)), torch.randn(7, 1000, generator=seeded(2)) * 5
    noise = augment.add_noise(x, bank, (3.0, 15.0), seeded()) - x
    ratio = 10 * (x.square().mean(1) / noise.square().mean(1)).log10()
    law(ratio, stats.uniform(3, 12).cdf)
    some = augment.add_noise(x, bank, (3.0, 15.0), seeded(), share=0.25)
    assert stats.binomtest(int((some != x).any(1).sum()), 3000, 0.25).pvalue > 1e-4


def test_reverberation_is_a_convolution() -> None:
    x, room = torch.randn(5, 300, generator=seeded(1)), torch.randn(1, 90, generator=seeded(2))
    out = augment.reverberate(x, room, seeded())
    for wet, dry in zip(out.numpy(), x.numpy(), strict=True):
        wanted = signal.convolve(dry, room[0].numpy())[:300]
        wanted *= math.sqrt((dry**2).mean() / (wanted**2).mean())
        assert np.allclose(wet, wanted, atol=1e-3)


def test_masks_of_spectrograms() -> None:
    out = augment.mask_bands(torch.ones(5000, 40, 60), (8, 10), seeded())
    frequencies, times = (out == 0).all(2).sum(1), (out == 0).all(1).sum(1)
    for widths, limit in ((frequencies, 8), (times, 10)):
        assert stats.chisquare(np.bincount(widths, minlength=limit + 1)).pvalue > 1e-4
    assert torch.equal((out == 0).sum((1, 2)), frequencies * 60 + times * 40 - frequencies * times)


def test_sizes_that_do_not_fit() -> None:
    x = images(2)
    for call in (lambda: augment.crop(x, (99, 9), seeded()), lambda: augment.motion_blur(x, 1, seeded(), size=4),
                 lambda: augment.crop_sound(x[:, 0, 0], 99, seeded()),
                 lambda: augment.add_noise(x[:, 0, 0], x[:, 0, 0, :9], (0, 9), seeded())):  # fmt: skip
        with pytest.raises(ValueError, match=r"fit|odd|long"):
            call()
