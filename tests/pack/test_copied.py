"""Files of many rows by URL: copied into the pack's folder, packed, and gone; kept where that was interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pack_support import jpeg, record, served, tar

from hotlap.cli.main import main
from hotlap.pack import Pack, PackSettings, open_source, pack, source_of
from hotlap.pack.arrow import pyarrow
from hotlap.pack.copied import COPIES
from hotlap.pack.manifest import LEFT_OUT, WORK
from hotlap.pack.sources.decode import decode_image
from hotlap.records.errors import HotlapError


@pytest.fixture
def there(tmp_path: Path) -> Path:
    found = tmp_path / "there"
    found.mkdir()
    return found


@pytest.fixture
def server(there: Path) -> Iterator[str]:
    """The folder ``there`` by HTTP, on loopback."""
    for package in ("fsspec", "aiohttp"):
        pytest.importorskip(package)
    with served(there, "cut.tar") as address:
        yield address


def test_tars_by_url(there: Path, tmp_path: Path, server: str) -> None:
    for shard in range(2):
        (there / str(shard)).mkdir()
        rows = {f"{k}.{end}": content for k in range(2)
                for end, content in (("jpg", jpeg(2 * shard + k)), ("cls", b"%d" % (2 * shard + k)))}  # fmt: skip
        tar(there / str(shard) / "a b.tar", rows)
    url = server + "/{0..1}/a%20b.tar"
    assert main(["pack", url, str(tmp_path / "p")]) == 0
    found = Pack(tmp_path / "p")
    assert found.values("label").tolist() == [0, 1, 2, 3] and found.metadata["source"] == url
    assert np.array_equal(found.row(3)["image"], decode_image(jpeg(3)))
    assert not (tmp_path / "p" / WORK).exists(), "nothing but the pack stays"
    assert main(["pack", url, str(tmp_path / "p"), "--append"]) == 0
    assert len(Pack(tmp_path / "p")) == 8 and not (tmp_path / "p" / WORK).exists()


def test_records_and_arrays_by_url(there: Path, tmp_path: Path, server: str) -> None:
    records = [record(float(k), jpeg(k)) for k in range(3)]
    (there / "train.rec").write_bytes(b"".join(records))
    with source_of(f"{server}/train.rec", tmp_path / "all") as source:
        assert len(source) == 3
    (there / "train.idx").write_text(f"0\t0\n1\t{len(records[0])}\n")
    with source_of(f"{server}/train.rec", tmp_path / "two") as source:
        assert len(source) == 2, "the index lies beside it"
    np.save(there / "a.npy", np.arange(6).reshape(3, 2))
    with source_of(f"{server}/a.npy", tmp_path / "p") as source:
        pack(source, tmp_path / "p")
    assert Pack(tmp_path / "p").values("data").tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_folder_of_parquet_by_url(slash: str, there: Path, tmp_path: Path, server: str) -> None:
    tables = pytest.importorskip("pyarrow.parquet")
    folder = there / "a b"
    (folder / "old").mkdir(parents=True)
    for k in range(2):
        tables.write_table(pyarrow().table({"x": [2.0 * k, 2.0 * k + 1]}), folder / f"part {k}.parquet")
    tables.write_table(pyarrow().table({"x": [9.0]}), folder / "old" / "part.parquet")
    (folder / "_SUCCESS").write_bytes(b"")
    url = f"{server}/a%20b{slash}"
    assert main(["pack", url, str(tmp_path / "p")]) == 0
    found = Pack(tmp_path / "p")
    assert found.values("x").tolist() == [0, 1, 2, 3], "as of a folder here: subfolders are none of it"
    assert found.metadata["source"] == url and not (tmp_path / "p" / WORK).exists()


def test_a_folder_of_pictures_by_url_is_read_as_it_lies(there: Path, tmp_path: Path, server: str) -> None:
    (there / "cat").mkdir()
    (there / "cat" / "a.jpg").write_bytes(jpeg(0))
    with source_of(server, tmp_path / "p") as source:
        assert len(source) == 1 and not (tmp_path / "p").exists()


def test_what_is_left_out_is_named_by_its_place(there: Path, tmp_path: Path, server: str) -> None:
    tar(there / "s.tar", {"a.jpg": jpeg(0), "b.jpg": b"no image"})
    with source_of(f"{server}/s.tar", tmp_path / "p") as source:
        pack(source, tmp_path / "p", PackSettings(on_error="quarantine"))
    assert f'"{server}/s.tar:b"' in (tmp_path / "p" / LEFT_OUT).read_text()


def test_a_packing_that_stops_keeps_what_was_copied(there: Path, tmp_path: Path, server: str) -> None:
    tar(there / "s.tar", {"a.jpg": jpeg(0), "b.jpg": b"no image"})
    words = ["pack", f"{server}/s.tar", str(tmp_path / "p")]
    assert main(words) != 0
    assert (tmp_path / "p" / COPIES / "s.tar").exists()
    (there / "s.tar").write_bytes(bytes((there / "s.tar").stat().st_size))  # not read a second time
    assert main([*words, "--on-error", "quarantine"]) == 0
    assert len(Pack(tmp_path / "p")) == 1


def test_nothing_is_copied_in_vain(there: Path, tmp_path: Path, server: str) -> None:
    tar(there / "s.tar", {"a.jpg": jpeg(0)})
    url, copied = f"{server}/s.tar", list[int]()
    with source_of(url, tmp_path / "p") as source:
        pack(source, tmp_path / "p")
    for append, folder, message in ((False, "p", "is a pack already"), (True, "q", "is no pack")):
        again = source_of(url, tmp_path / folder, None, append, lambda done, _: copied.append(done))
        with pytest.raises(HotlapError, match=message), again:
            pass
    assert not copied
    with (
        pytest.raises(HotlapError, match=r"missing\.tar cannot be"),
        source_of(f"{server}/missing.tar", tmp_path / "q"),
    ):
        pass
    tar(there / "cut.tar", {"a.jpg": jpeg(0)})
    with pytest.raises(HotlapError, match=r"Staging cut\.tar failed"), source_of(f"{server}/cut.tar", tmp_path / "q"):
        pass


def test_what_is_here_is_read_here(there: Path, tmp_path: Path) -> None:
    tar(there / "s.tar", {"a.cls": b"7"})
    with source_of(str(there / "s.tar"), tmp_path / "p") as source:
        assert source.row(0) == open_source(str(there / "s.tar")).row(0)
    assert not (tmp_path / "p").exists()
