"""Windows of JPEGs: the bits of the whole picture's, and the whole picture where a window cannot be had."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
import torch
from PIL import Image as Picture

from hotlap.pack import Image, Loader, Sequential, jpeg_windows, kernel
from hotlap.records.errors import HotlapError

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def compiled() -> None:
    assert kernel.ready(wait=True)
    if not list(Path(PIL.__file__).parents[1].glob("pillow.libs/libjpeg-*.so.62.*")):
        pytest.skip("Pillow is linked with another libjpeg")
    assert jpeg_windows.ready()


def photo(width: int, height: int, mode: str = "RGB", **options: Any) -> bytes:
    """Noise: every pixel tells whether it is the right one."""
    pixels = RNG.integers(0, 256, (height, width, 4), dtype=np.uint8)
    out = io.BytesIO()
    Picture.fromarray(pixels[..., :3]).convert(mode).save(out, "JPEG", **options)
    return out.getvalue()


def whole(content: bytes) -> np.ndarray[Any, Any]:
    return np.asarray(Picture.open(io.BytesIO(content)).convert("RGB"))


def windows(contents: list[bytes], size: tuple[int, int], down: Any, along: Any, moving: int = 1) -> tuple[int, Any]:
    """(how many were decoded, the windows)."""
    memory = torch.frombuffer(bytearray(b"".join(contents)), dtype=torch.uint8)
    sizes = np.array([len(c) for c in contents])
    out = np.zeros((len(contents), *size, 3), np.uint8)
    done = jpeg_windows.decode_windows(
        memory, np.cumsum(sizes) - sizes, sizes, np.asarray(down), np.asarray(along), moving, out
    )
    return done, out


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("more", [{}, {"progressive": True}, {"mode": "L"}, {"restart_marker_rows": 1}], ids=str)
def test_every_window_has_the_bits_of_the_whole_picture(subsampling: str, more: dict[str, Any]) -> None:
    contents = [photo(75, 61, subsampling=subsampling, quality=90, **more) for _ in range(12)]
    size = (33, 29)
    down, along = (np.r_[0.0, 0.999999, RNG.random(10)] for _ in range(2))
    done, out = windows(contents, size, down, along)
    assert done == 12
    for content, window, y, x in zip(contents, out, down, along, strict=True):
        top, left = int(y * (61 - 33 + 1)), int(x * (75 - 29 + 1))
        assert np.array_equal(window, whole(content)[top : top + 33, left : left + 29]), (top, left)


@pytest.mark.parametrize("size", [(61, 75), (1, 1), (61, 1), (1, 75)])
def test_windows_as_large_or_small_as_can_be(size: tuple[int, int]) -> None:
    content = photo(75, 61)
    done, out = windows([content], size, [0.5], [0.5], moving=0)
    top, left = (61 - size[0]) // 2, (75 - size[1]) // 2
    assert done == 1 and np.array_equal(out[0], whole(content)[top : top + size[0], left : left + size[1]])


def test_what_cannot_be_decoded_ends_the_call_before_it() -> None:
    good = photo(40, 40)
    png = io.BytesIO()
    Picture.new("RGB", (40, 40)).save(png, "PNG")
    damaged = good[:200] + bytes(300) + good[500:]
    for bad in (good[: len(good) // 2], damaged, b"", b"no picture", png.getvalue(), photo(31, 40), photo(40, 31),
                photo(40, 40, "CMYK")):  # fmt: skip
        done, out = windows([good, good, bad, good], (32, 32), [1 - 1e-9] * 4, [0.0] * 4)
        assert done == 2 and np.array_equal(out[1], whole(good)[8:, :32]) and not out[3].any()


def test_a_loader_gives_the_same_with_and_without(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pngs = io.BytesIO()
    Picture.fromarray(RNG.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(pngs, "PNG")
    contents = [photo(48 + k, 44, progressive=k % 3 == 0) for k in range(11)]
    contents[4], contents[9] = pngs.getvalue(), photo(50, 50, "CMYK")
    pack = make([{"image": c} for c in contents])

    def batches() -> list[torch.Tensor]:
        views = {"image": Image((32, 30), flip=0.5)}
        return [batch["image"].clone() for batch in Loader(pack, 4, views, Sequential())]

    quick = batches()
    calls = []
    monkeypatch.setattr(jpeg_windows, "ready", lambda: calls.append(1))
    assert all(torch.equal(a, b) for a, b in zip(quick, batches(), strict=True)) and calls
    with pytest.raises(HotlapError, match="less than the crop"):
        next(iter(Loader(pack, 4, {"image": Image((45, 10))})))


def test_another_library_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name, value in ((sys, "platform", "win32"), (PIL, "__file__", "/nowhere/PIL/__init__.py")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, value)
            assert jpeg_windows._functions.__wrapped__() is None


def test_what_is_damaged_is_found_by_whichever_thread_meets_it() -> None:
    contents = [photo(40, 30) for _ in range(24)]
    for damaged in (23, 17, 2):
        contents[damaged] = contents[damaged][:40]
        assert windows(contents, (16, 16), np.zeros(24), np.zeros(24))[0] == damaged, "the first of them"
