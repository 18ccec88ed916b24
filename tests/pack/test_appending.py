"""``hotlap pack --append``: read as the pack was, and told by its option what does not go with it."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pack_support import Rows, jpeg

from hotlap.cli.main import main
from hotlap.pack import Pack, PackSettings, SourceOptions, open_source, pack
from hotlap.pack.manifest import MANIFEST, write_json
from hotlap.records.errors import HotlapError


def folder_of(root: Path, *sizes: tuple[int, int]) -> Path:
    """Images of these sizes (width, height), of one class."""
    for k, size in enumerate(sizes):
        path = root / "cat" / f"{root.name}-{k}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(k, size))
    return root


def run(source: Path, target: Path, *options: str) -> int:
    return main(["pack", str(source), str(target), "--processes", "1", *options])


def test_images_of_one_size_join_encoded_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder_of(tmp_path / "vary", (32, 24), (20, 20)), tmp_path / "p") == 0
    one = folder_of(tmp_path / "one", (32, 24), (32, 24))
    for option in (["--store", "raw"], ["--size", "8x8"]):
        assert run(one, tmp_path / "p", "--append", *option) == 2
        shown = capsys.readouterr().err
        assert f"holds encoded files: {' '.join(option)} does not go with that." in shown
        assert f"Leave {option[0]} out" in shown
    assert run(one, tmp_path / "p", "--append") == 0
    assert [c.kind for c in Pack(tmp_path / "p").manifest.columns] == ["bytes", "tensor", "text"]
    assert len(Pack(tmp_path / "p")) == 4


def test_rows_and_size_are_as_the_packs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = folder_of(tmp_path / "first", (32, 24), (20, 20))
    assert run(first, tmp_path / "p", "--size", "16x12", "--rows", "interleaved") == 0
    more = folder_of(tmp_path / "more", (40, 40))
    for option, held in ((["--size", "8x8"], "images of 16x12"), (["--rows", "planar"], "interleaved images"),
                         (["--store", "encoded"], "decoded images")):  # fmt: skip
        assert run(more, tmp_path / "p", "--append", *option) == 2
        assert f"holds {held}: {' '.join(option)} does not" in capsys.readouterr().err
    assert run(more, tmp_path / "p", "--append") == 0
    assert Pack(tmp_path / "p").row(2)["image"].shape == (16, 12, 3)


def test_images_are_not_stretched_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder_of(tmp_path / "one", (32, 24)), tmp_path / "p") == 0
    more = folder_of(tmp_path / "more", (40, 40), (30, 30))
    assert run(more, tmp_path / "p", "--append") == 1
    assert "(--size)" in capsys.readouterr().err
    assert run(more, tmp_path / "p", "--append", "--size", "24x32") == 0
    assert len(Pack(tmp_path / "p")) == 3


def test_recordings_are_as_the_packs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import soundfile

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        soundfile.write(tmp_path / name / f"{name}.wav", np.zeros(50, np.int16), 8000)
    assert run(tmp_path / "a", tmp_path / "p", "--store", "encoded") == 0
    assert run(tmp_path / "b", tmp_path / "p", "--append") == 0
    assert [isinstance(row, bytes) for row in Pack(tmp_path / "p").texts("audio")] == [True, True]
    assert run(tmp_path / "a", tmp_path / "q") == 0
    assert run(tmp_path / "b", tmp_path / "q", "--append", "--store", "encoded") == 2
    assert "decoded recordings: --store encoded" in capsys.readouterr().err


def test_there_is_no_pack_to_append_to(tmp_path: Path) -> None:
    for target in (tmp_path / "gone" / "p", tmp_path):
        before = list(tmp_path.rglob("*"))
        with pytest.raises(HotlapError, match=r"is no pack: there is nothing to append to\. Leave --append out"):
            pack(Rows([{"x": 1}]), target, PackSettings(append=True))
        assert list(tmp_path.rglob("*")) == before


def test_whoever_resizes_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, more = folder_of(tmp_path / "first", (32, 24)), folder_of(tmp_path / "more", (40, 40))
    pack(open_source(str(first), SourceOptions(size=(16, 12))), tmp_path / "p")
    assert run(more, tmp_path / "p", "--append") == 0
    assert Pack(tmp_path / "p").row(1)["image"].shape == (3, 16, 12)
    np.save(tmp_path / "x.npy", np.zeros((2, 3, 24, 32), np.uint8))
    assert run(tmp_path / "x.npy", tmp_path / "q", "--size", "8x8") == 2
    assert "--size resizes images, and" in capsys.readouterr().err and not (tmp_path / "q").exists()
    assert run(tmp_path / "x.npy", tmp_path / "q") == 0
    assert "resized_to" not in Pack(tmp_path / "q").metadata


def test_bytes_are_no_encoded_images(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"x": [b"1", b"2"]}), tmp_path / "a.parquet")
    assert run(tmp_path / "a.parquet", tmp_path / "p") == 0
    assert run(tmp_path / "a.parquet", tmp_path / "p", "--append", "--store", "raw") == 0
    assert Pack(tmp_path / "p").texts("x") == [b"1", b"2"] * 2


def test_encoded_images_beside_decoded_recordings(tmp_path: Path) -> None:
    import soundfile

    out = io.BytesIO()
    soundfile.write(out, np.zeros(50, np.int16), 8000, format="WAV")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, content in (("0.jpg", jpeg(0)), ("0.wav", out.getvalue()), ("1.jpg", jpeg(1, (20, 20))),
                              ("1.wav", out.getvalue())):  # fmt: skip
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    for option in ([], ["--append"]):
        assert run(tmp_path / "a.tar", tmp_path / "p", *option) == 0
    assert {c.name: c.kind for c in Pack(tmp_path / "p").manifest.columns}.items() >= {
        ("image", "bytes"),
        ("audio", "ragged"),
    }


def test_a_column_that_is_to_vary_is_one_of_the_rows(tmp_path: Path) -> None:
    source = Rows([{"x": 1}])
    pack(source, tmp_path / "p")
    with pytest.raises(HotlapError, match=r"--ragged y: the columns are x\."):
        pack(source, tmp_path / "p", PackSettings(append=True, ragged=frozenset({"y"})))
    assert len(Pack(tmp_path / "p")) == 1


def test_parts_of_other_names_are_no_hindrance(tmp_path: Path) -> None:
    found = pack(Rows([{"x": 1}]), tmp_path / "p")
    (tmp_path / "p" / found.parts[0].file).rename(tmp_path / "p" / "part-mine.arrow")
    parts = [replace(found.parts[0], file="part-mine.arrow")]
    write_json(tmp_path / "p" / MANIFEST, replace(found, parts=parts).to_json())
    pack(Rows([{"x": 2}]), tmp_path / "p", PackSettings(append=True))
    assert Pack(tmp_path / "p").values("x").tolist() == [1, 2]
