"""Image files by every way in: one picture, one limit, one set of messages."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.face_image import ARCFACE_POINTS, align, square
from hotlap_workloads.parts.image_file import MAX_PIXELS, read_bytes
from hotlap_workloads.tiny_detr.files import FromFiles
from hotlap_workloads.twin_verify.pixels import read_sized

SIDE = 112
WAYS: dict[str, Callable[[Path], Any]] = {
    "detection": lambda path: FromFiles([path], [(SIDE, SIDE)])(0),
    "twins": lambda path: read_sized(path, SIDE).transpose(1, 2, 0),
    "square face": lambda path: square(read_bytes(path), path, SIDE),
    "aligned face": lambda path: align(read_bytes(path), path, SIDE, ARCFACE_POINTS),
}


@pytest.fixture(params=WAYS)
def read(request: pytest.FixtureRequest) -> Callable[[Path], Any]:
    return WAYS[request.param]


def png_that_says(width: int, height: int, pixels: bytes = zlib.compress(bytes(99))) -> bytes:
    """A hundred bytes, of that size by its header."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def test_the_picture_is_rgb(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    grey = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE), np.uint8)
    Image.fromarray(grey).save(tmp_path / "a.png")
    picture = read(tmp_path / "a.png")
    assert picture.dtype == np.uint8 and picture.shape == (SIDE, SIDE, 3)
    assert np.abs(picture - grey[:, :, None].astype(int)).max() <= 1  # aligning goes by way of floats


@pytest.mark.parametrize(("mode", "kind", "pixel"), [("I;16", "png", "u2"), ("I", "tif", "i4"), ("F", "tif", "f4")])
def test_grey_of_more_than_8_bits_is_refused(
    tmp_path: Path, read: Callable[[Path], Any], mode: str, kind: str, pixel: str
) -> None:
    """Pillow would make white of all but its darkest shades."""
    ramp = np.linspace(0, 65535, SIDE * SIDE).astype(pixel).reshape(SIDE, SIDE)
    image = Image.fromarray(ramp)
    assert image.mode == mode
    image.save(tmp_path / f"a.{kind}")
    with pytest.raises(DataError, match=rf"a\.{kind}: has more than 8 bits a grey pixel, .* Save it with 8"):
        read(tmp_path / f"a.{kind}")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("size", [(10_000, 9_000), (60_000, 60_000)], ids=["ours", "pillows"])
def test_what_asks_for_too_much_memory_is_refused(
    tmp_path: Path, read: Callable[[Path], Any], size: tuple[int, int]
) -> None:
    (tmp_path / "bomb.png").write_bytes(png_that_says(*size))
    with pytest.raises(DataError, match=rf"bomb\.png: has more than {MAX_PIXELS} pixels"):
        read(tmp_path / "bomb.png")


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_cut_file_is_named(tmp_path: Path, read: Callable[[Path], Any], kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    noise = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    Image.fromarray(noise).save(path, kind)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(DataError, match=rf"a\.{kind}: is cut short\. Copy it again\."):
        read(path)


def test_what_is_no_image_is_named(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    with pytest.raises(DataError, match=r"gone\.jpg: does not exist"):
        read(tmp_path / "gone.jpg")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read(tmp_path)
    for content in (b"", b"no image"):
        (tmp_path / "a.jpg").write_bytes(content)
        with pytest.raises(DataError, match=r"a\.jpg: is no readable image: empty, damaged at its beginning, or of no"):
            read(tmp_path / "a.jpg")
    (tmp_path / "a.png").write_bytes(png_that_says(SIDE, SIDE, b"no pixels"))
    with pytest.raises(DataError, match=r"a\.png: is no readable image: OSError: .*\. Copy it again\."):
        read(tmp_path / "a.png")
