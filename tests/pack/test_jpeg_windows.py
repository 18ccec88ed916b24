"""Windows of JPEGs: the bits of the whole picture's, and the whole picture where a window cannot be had."""

from __future__ import annotations

import io
import shutil
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import PIL
import pytest
import simplejpeg
import torch
from PIL import Image as Picture

from hotlap.pack import Image, Loader, Sequential, jpeg_windows, kernel
from hotlap.pack.sources.decode import MAX_PIXELS
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


@pytest.mark.parametrize("progressive", [False, True])
def test_a_header_that_asks_for_too_much_is_not_believed(make: Any, monkeypatch: Any, progressive: bool) -> None:
    content = photo(40, 40, progressive=progressive)
    at = content.index(b"\xff\xc2" if progressive else b"\xff\xc0") + 5  # of the frame: height, width
    bomb = content[:at] + (9000).to_bytes(2, "big") * 2 + content[at + 4 :]
    asked: list[bytes] = []
    monkeypatch.setattr(simplejpeg, "decode_jpeg", lambda content, *_: asked.append(bytes(content)))
    assert windows([bomb], (32, 32), [0.0], [0.0])[0] == 0
    pack = make([{"image": bomb}])
    for ready in (jpeg_windows.ready, lambda: False):
        monkeypatch.setattr(jpeg_windows, "ready", ready)
        with pytest.raises(HotlapError, match=r"9000x9000 pixels; at most 64000000"):
            next(iter(Loader(pack, 1, {"image": Image((32, 32))})))
    large = io.BytesIO()
    Picture.new("L", (8001, 8000)).save(large, "JPEG", progressive=progressive)
    assert windows([large.getvalue()], (32, 32), [0.0], [0.0])[0] == 0, "though it holds what it says"
    # A thread of an earlier loader may still be decoding: what it asks for is no matter.
    assert bomb not in asked and MAX_PIXELS == 64_000_000, "MOST_PIXELS of jpeg.c is the same"


def test_addresses_outlive_their_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[weakref.ref[Any]] = []
    convert = np.ascontiguousarray

    def converted(array: Any, dtype: Any) -> Any:
        kept.append(weakref.ref(found := convert(array, dtype)))
        return found

    alive: list[bool] = []
    monkeypatch.setattr(jpeg_windows.np, "ascontiguousarray", converted)
    library = SimpleNamespace(jpeg_windows=lambda *_: alive.extend(ref() is not None for ref in kept) or 0)
    monkeypatch.setattr(jpeg_windows.kernel, "library", lambda: library)
    out = np.zeros((3, 8, 8, 3), np.uint8)
    numbers = np.arange(3, dtype=np.int32)
    jpeg_windows.decode_windows(torch.zeros(1), numbers, numbers, numbers, numbers, 1, out)
    assert alive == [True] * 4


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
