"""Images of files and of bytes come decoded from memory, the same to the last bit."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from hotlap.lever.file_cache import FileCache
from hotlap.lever.readers import cached_image_load

Image = pytest.importorskip("PIL.Image")
ImageFile = pytest.importorskip("PIL.ImageFile")
numpy = pytest.importorskip("numpy")


@pytest.fixture
def decodings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    real = ImageFile.ImageFile.load
    seen: list[Any] = []

    def load(self: Any) -> Any:
        if self.tile:
            seen.append(self)
        return real(self)

    cache = FileCache(str(tmp_path / "cache"), 1 << 22)
    monkeypatch.setattr(ImageFile.ImageFile, "load", cached_image_load(cache, Image, load))
    return seen


@pytest.mark.parametrize(
    ("suffix", "mode"), [("jpg", "RGB"), ("jpg", "L"), ("png", "RGBA"), ("bmp", "RGB"), ("jpg", "CMYK")]
)
def test_equal_to_the_decoded(tmp_path: Path, decodings: list[Any], suffix: str, mode: str) -> None:
    bands = {"L": 1, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    pixels = numpy.random.RandomState(0).randint(0, 255, (20, 30, bands), dtype=numpy.uint8)
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(pixels.squeeze(), mode).save(path)
    arrays = []
    for _ in range(3):
        image = Image.open(path)
        arrays.append(numpy.array(image))
        assert image.mode == mode and image.size == (30, 20)
        image.putpixel((0, 0), 0)
    assert len(decodings) == 1
    assert all(numpy.array_equal(a, arrays[0]) for a in arrays)


def test_draft_and_full_size_do_not_mix(tmp_path: Path, decodings: list[Any]) -> None:
    path = tmp_path / "a.jpg"
    Image.fromarray(numpy.zeros((64, 64, 3), numpy.uint8)).save(path)
    full = Image.open(path)
    full.load()
    small = Image.open(path)
    small.draft("RGB", (16, 16))
    assert small.convert("RGB").size == (16, 16) and full.size == (64, 64)
    with Image.open(path) as again:
        assert again.resize((8, 8)).size == (8, 8)


def test_palettes_are_left_alone(tmp_path: Path, decodings: list[Any]) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(numpy.zeros((8, 8, 3), numpy.uint8)).convert("P").save(path)
    for _ in range(2):
        assert Image.open(path).convert("RGB").getpixel((0, 0)) == (0, 0, 0)
    assert len(decodings) == 2


def opened(path: Path, how: str) -> Any:
    return open(path, "rb") if how == "file" else io.BytesIO(path.read_bytes())


@pytest.mark.parametrize("how", ["file", "bytes"])
@pytest.mark.parametrize("suffix", ["jpg", "png", "bmp"])
def test_open_files_and_bytes_in_memory_too(tmp_path: Path, decodings: list[Any], how: str, suffix: str) -> None:
    """As torchvision's ``ImageFolder`` opens its images, and who reads them from an archive."""
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(numpy.random.RandomState(0).randint(0, 255, (20, 30, 3), dtype=numpy.uint8)).save(path)
    seen = []
    for _ in range(3):
        with opened(path, how) as file, Image.open(file) as image:
            seen.append((image.convert("RGB").tobytes(), file.tell()))
            assert image.im is not None and not file.closed
    assert len(decodings) == 1 and len(set(seen)) == 1, "pixels, and where the file is left"


@pytest.mark.parametrize("how", ["file", "bytes"])
def test_other_contents_are_other_images(tmp_path: Path, decodings: list[Any], how: str) -> None:
    path = tmp_path / "a.bmp"
    for value in (1, 2):
        Image.fromarray(numpy.full((8, 8, 3), value, numpy.uint8)).save(path)
        os.utime(path, ns=(value, value))
        with opened(path, how) as file:
            assert Image.open(file).getpixel((0, 0)) == (value,) * 3
    assert len(decodings) == 2


def test_who_gives_the_bytes_in_his_own_way_is_left_alone(tmp_path: Path, decodings: list[Any]) -> None:
    class Stream(io.BytesIO):
        pass

    path = tmp_path / "a.jpg"
    Image.fromarray(numpy.zeros((8, 8, 3), numpy.uint8)).save(path)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(path, "a.jpg")
        for _ in range(2):
            Image.open(Stream(path.read_bytes())).load()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        for _ in range(2):
            Image.open(archive.open("a.jpg")).load()
    assert len(decodings) == 4
