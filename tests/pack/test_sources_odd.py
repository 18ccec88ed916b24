"""Sources that are not what they seem: refused by name, never packed as something else, and no traceback."""

from __future__ import annotations

import io
import json
import os
import struct
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from pack_support import jpeg, served
from PIL import Image

from hotlap.pack import Pack, PackSettings, SourceOptions, open_source, pack, stage
from hotlap.pack.sources.contract import BadRow
from hotlap.pack.sources.decode import check_image, decode_audio, decode_image
from hotlap.pack.sources.listing import list_folder
from hotlap.records.errors import HotlapError


def packed(spec: Path | str, folder: Path, **options: Any) -> Pack:
    pack(open_source(str(spec), SourceOptions(**options)), folder)
    return Pack(folder)


def saved(array: np.ndarray, kind: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(array).save(out, kind)
    return out.getvalue()


def overwritten(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new) :]


def png16(colours: int, channels: int) -> bytes:
    """A PNG of 16 bits a channel, which Pillow reads and does not write."""
    line = b"\0" + (np.arange(8 * channels) * 1000).astype(">u2").tobytes()
    head = struct.pack(">IIBBBBB", 8, 8, 16, colours, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(line * 8)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c)) for k, c in chunks
    )


def bmp16() -> bytes:
    """A BMP of 5, 6 and 5 bits a channel."""
    head = struct.pack("<IiiHHIIiiIIIII", 40, 8, 8, 1, 16, 3, 128, 0, 0, 0, 0, 0xF800, 0x7E0, 0x1F)
    return b"BM" + struct.pack("<IHHI", 14 + len(head) + 128, 0, 0, 14 + len(head)) + head + bytes(128)


NOISE = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
GREY = (np.arange(64, dtype=np.uint16) * 1000).reshape(8, 8)


@pytest.mark.parametrize(("content", "message"), [
    (overwritten(saved(NOISE, "JPEG"), 900, b"\xff\xd9"), "premature end"),
    (saved(GREY, "PNG"), r"more than 8 bits \(mode I;16\)"),
    (saved(GREY, "TIFF"), r"more than 8 bits \(mode I;16\)"),
    (saved(GREY.astype(np.int32), "TIFF"), r"more than 8 bits \(mode I\)"),
    (saved(GREY.astype(np.float32), "TIFF"), r"more than 8 bits \(mode F\)"),
    (png16(2, 3), r"more than 8 bits \(mode RGB;16B\)"),
    (png16(4, 2), r"more than 8 bits \(mode LA;16B\)"),
    (png16(6, 4), r"more than 8 bits \(mode RGBA;16B\)"),
    (b"P6 8 8 1023\n" + bytes(8 * 8 * 6), r"more than 8 bits \(mode RGB up to 1023\)"),
    (b"not an image", r"cannot identify image file\)$"),
])  # fmt: skip
def test_images_that_would_be_packed_wrong(content: bytes, message: str) -> None:
    for read in (check_image, decode_image, lambda found: decode_image(found, (16, 16))):
        with pytest.raises(BadRow, match=message):
            read(content)


@pytest.mark.parametrize("content", [bmp16(), b"P6 8 8 100\n" + bytes(8 * 8 * 3)])
def test_images_of_less_than_8_bits(content: bytes) -> None:
    assert decode_image(content).shape == (3, 8, 8)


def test_what_leaves_a_jpeg_whole_is_let_pass() -> None:
    whole = saved(NOISE, "JPEG")
    extraneous = whole[:-2] + b"\0\0\0" + whole[-2:]
    assert np.array_equal(decode_image(extraneous), decode_image(whole))
    inks = io.BytesIO()
    Image.fromarray(NOISE).convert("CMYK").save(inks, "JPEG")
    assert decode_image(inks.getvalue()).shape == (3, 64, 64)
    small = Image.open(io.BytesIO(whole)).resize((24, 16), Image.Resampling.BILINEAR)
    assert np.array_equal(decode_image(whole, (16, 24)), np.asarray(small).transpose(2, 0, 1))


def recording(kind: str, frames: int = 400) -> bytes:
    out = io.BytesIO()
    soundfile.write(out, np.arange(frames, dtype=np.int16), 16000, format=kind)
    return out.getvalue()


WAV = recording("WAV")
SIZE = WAV.index(b"data") + 4


@pytest.mark.parametrize(("content", "message"), [
    (WAV[:-100], "truncated: 700 of 800 bytes"),
    (WAV[:-1], "truncated: 799 of 800"),
    (recording("AIFF")[:-100], "truncated: 708 of 808 bytes"),
    (recording("WAV", 0), "0 frames"),
    (b"not audio", r"\(Error opening: Format not recognised\)"),
])  # fmt: skip
def test_recordings_that_would_be_packed_short(content: bytes, message: str) -> None:
    with pytest.raises(BadRow, match=message):
        decode_audio(content)


@pytest.mark.parametrize("content", [
    WAV,
    recording("AIFF"),
    overwritten(WAV, SIZE, b"\xff" * 4),
    overwritten(WAV, SIZE, struct.pack("<I", 0x7FFFF000)),
    WAV + b"LIST\x04\0\0\0abcd",
    WAV[:36] + b"junk\x03\0\0\0abc\0" + WAV[36:],
])  # fmt: skip
def test_recordings_that_are_whole(content: bytes) -> None:
    assert decode_audio(content)[0].tolist() == list(range(400))


def test_a_file_without_a_class_is_named(pictures: Path) -> None:
    (pictures / "cover.jpg").write_bytes(jpeg(0))
    with pytest.raises(HotlapError, match=r"files without a class: cover.jpg \(1 in all\)"):
        open_source(str(pictures))


@pytest.mark.parametrize(("content", "message"), [
    ("cat/0.jpg 0\ncat/1.jpg 1\ncat/2.jpg\n", ":3 has no label, line 1 has a label"),
    ("\n# files\ncat/0.jpg\ncat/1.jpg 1\n", ":4 has a label, line 3 has no label"),
    ("# c\n\nfile,label\ncat/0.jpg,3\n", ":3 should hold one file name"),
])  # fmt: skip
def test_lists_name_the_line_that_is_wrong(pictures: Path, content: str, message: str) -> None:
    (pictures / "list.txt").write_text(content)
    with pytest.raises(HotlapError, match=f"list.txt{message}"):
        open_source(str(pictures / "list.txt"))


def test_a_list_may_begin_with_a_byte_order_mark(pictures: Path, tmp_path: Path) -> None:
    (pictures / "list.txt").write_text("cat/0.jpg 0\ndog/3.jpg 1\n", "utf-8-sig")
    assert packed(pictures / "list.txt", tmp_path / "p").row(0)["name"] == "cat/0.jpg"


def test_absolute_names_below_the_root(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(pictures)
    (tmp_path / "list.txt").write_text(f"{pictures}/cat/0.jpg 0\n{pictures}/dog/3.jpg 1\n")
    (tmp_path / "list.json").write_text(json.dumps({"a": [f"{pictures}/cat/0.jpg"], "b": [f"{pictures}/dog/3.jpg"]}))
    for number, (name, root) in enumerate((("list.txt", pictures), ("list.json", tmp_path / "linked"))):
        found = packed(tmp_path / name, tmp_path / f"p{number}", root=str(root))
        assert [found.row(k)["name"] for k in range(2)] == ["cat/0.jpg", "dog/3.jpg"]
    with pytest.raises(HotlapError, match="leads out of"):
        packed(tmp_path / "list.txt", tmp_path / "q", root=str(pictures / "cat"))


def test_a_pipe_is_named_and_not_waited_for(pictures: Path, tmp_path: Path) -> None:
    os.mkfifo(pictures / "cat" / "pipe.jpg")
    os.mkfifo(pictures / "control")
    with pytest.raises(HotlapError, match=r"pipe.jpg is no file"):
        stage(str(pictures), tmp_path / "staged")
    found = pack(open_source(str(pictures)), tmp_path / "p", PackSettings(on_error="quarantine"))
    assert (found.rows, found.left_out) == (6, 1)
    assert "pipe.jpg is no file" in (tmp_path / "p" / "left_out.jsonl").read_text()


def test_a_name_that_is_no_text(pictures: Path, tmp_path: Path) -> None:
    with open(os.fsencode(pictures) + b"/cat/\xff.jpg", "wb") as out:
        out.write(jpeg(0))
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(os.fsdecode(os.fsencode(pictures) + b"/cat/\xff.jpg"), "\udcff.jpg")
    for spec in (pictures, tmp_path / "a.tar"):
        with pytest.raises(HotlapError, match=r"\\udcff(.jpg)?' is not UTF-8"):
            open_source(str(spec))


def test_folders_by_url_are_listed_whole_or_not_at_all(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    (pictures / "dog").rename(pictures / "名 #1%20")
    with served(pictures) as address:
        assert list_folder(address, (".jpg",))[3:] == [f"名 #1%20/{k}.jpg" for k in (3, 4, 5)]
        assert packed(address, tmp_path / "p").metadata["classes"] == ["cat", "名 #1%20"]
        (pictures / "list.txt").write_text("cat/0.jpg\ncat/1%2ejpg.jpg\n")
        (pictures / "cat" / "1.jpg").rename(pictures / "cat" / "1.jpg.jpg")
        assert packed(f"{address}/list.txt", tmp_path / "q").row(1)["name"] == "cat/1.jpg.jpg"
        (pictures / "all.json").write_text(json.dumps({"a": ["cat/0.jpg"], "b": ["cat/1%2ejpg.jpg"]}))
        assert packed(f"{address}/all.json", tmp_path / "r").row(1)["name"] == "cat/1.jpg.jpg"
    with pytest.raises(HotlapError, match=r"cannot be listed: Cannot connect"):
        open_source(address)
    (pictures / "cat" / "more").mkdir()
    with served(pictures, "more/") as address, pytest.raises(HotlapError, match=r"/cat/more/ cannot be listed"):
        open_source(address)


def test_links_that_begin_with_the_page_itself(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    links = ["./", "../", "./cat/", "./?C=N;O=D", "dog/", "./a.jpg"]
    (pictures / "index.html").write_text("".join(f'<a href="{link}">{link}</a>' for link in links))
    (pictures / "cat" / "index.html").write_text('<a href="./0.jpg">0</a><a href="/cat/1.jpg">1</a>')
    with served(pictures) as address:
        assert list_folder(address, (".jpg",)) == [
            "a.jpg",
            "cat/0.jpg",
            "cat/1.jpg",
            *(f"dog/{k}.jpg" for k in (3, 4, 5)),
        ]


def test_a_folder_elsewhere_may_have_a_question_mark(pictures: Path) -> None:
    pytest.importorskip("fsspec")
    (pictures / "dog").rename(pictures / "dog?")
    assert list_folder(f"file://{pictures}", (".jpg",))[3:] == [f"dog?/{k}.jpg" for k in (3, 4, 5)]


def test_a_local_folder_may_begin_as_an_address_does(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pictures.rename("http_images")
    Path("http_images/cat/0.jpg").rename("http_images/cat/a%20b.jpg")
    Path("list.txt").write_text("cat/a%20b.jpg\n")
    assert packed("list.txt", tmp_path / "p", root="http_images").row(0)["name"] == "cat/a%20b.jpg"
