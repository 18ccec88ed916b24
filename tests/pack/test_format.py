"""What is written is what is read, by us and by Arrow; damage is found, named, never served."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pack_support import RAGGED, Rows, mixed

from hotlap.pack import Pack, PackSettings, pack
from hotlap.pack.gather import gather_rows
from hotlap.pack.manifest import read_json, write_json
from hotlap.records.errors import HotlapError

Make = Callable[..., Pack]


def same(read: dict[str, Any], written: dict[str, Any]) -> bool:
    return all(
        read[k] == v if isinstance(v, str | bytes) else np.array_equal(np.asarray(read[k]), v)
        for k, v in written.items()
    )


def test_every_row_comes_back(make: Make) -> None:
    rows = mixed(100)
    found = make(rows)
    assert len(found) == 100 and len(found.manifest.parts) > 3 and len(found.chunk_rows) > 10
    assert all(same(found.row(k), rows[k]) for k in range(100))
    assert same(found.row(-1), rows[-1])
    assert found.metadata["made_by"] == "test"


def test_rows_in_any_order_in_one_call(make: Make) -> None:
    rows = mixed(60)
    found = make(rows)
    order = found.rows(np.random.default_rng(1).permutation(60))
    assert np.array_equal(gather_rows(found, "label", order).numpy(), [rows[k]["label"] for k in order])
    assert np.array_equal(gather_rows(found, "image", order).numpy(), [rows[k]["image"] for k in order])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
                                   "float16", "float32", "float64"])  # fmt: skip
def test_every_dtype(make: Make, dtype: str) -> None:
    info = np.finfo(dtype) if dtype.startswith("float") else np.iinfo(dtype)
    rows = [{"x": np.array([info.min, k, info.max], dtype)} for k in range(9)]
    found = make(rows)
    assert np.array_equal(found.values("x"), np.stack([r["x"] for r in rows]))


def test_arrow_reads_a_part_as_it_is(make: Make) -> None:
    import pyarrow as pa

    rows = mixed(30)
    found = make(rows)
    tables = [pa.ipc.open_file(str(found.folder / p.file)).read_all() for p in found.manifest.parts]
    read = pa.concat_tables(tables).select(["label", "name", "boxes"]).to_pylist()
    assert [r["name"] for r in read] == [r["name"] for r in rows]
    assert np.allclose(read[3]["boxes"], rows[3]["boxes"])


def test_beyond_the_end_is_an_index_error(make: Make) -> None:
    found = make(mixed(10))
    for index in (10, -11, 1 << 40):
        with pytest.raises(IndexError, match="10 rows"):
            found.rows([0, index])


def test_every_flipped_byte_is_found(make: Make, tmp_path: Path) -> None:
    found = make(mixed(25))
    from hotlap.pack.verifying import verify

    assert verify(found.folder) == []
    files = [p.file for p in found.manifest.parts] + [p.lengths_file for p in found.manifest.parts]
    rng = np.random.default_rng(0)
    for file in [*files, "pack.json"]:
        size = (found.folder / file).stat().st_size
        for at in rng.integers(0, size, 25):
            copy = tmp_path / "copy"
            shutil.copytree(found.folder, copy)
            content = bytearray((copy / file).read_bytes())
            content[at] ^= 1 << int(rng.integers(8))
            (copy / file).write_bytes(content)
            problems = verify(copy)
            assert problems and any(file in p for p in problems), (file, at, problems)
            shutil.rmtree(copy)


def test_a_flipped_byte_is_never_served(make: Make) -> None:
    rows = mixed(25)
    found = make(rows)
    part = found.manifest.parts[0]
    path = found.folder / part.file
    content = bytearray(path.read_bytes())
    content[part.chunks[1].data["image"] + 5] ^= 1
    path.write_bytes(content)
    damaged = Pack(found.folder)
    first = part.chunks[0].rows
    assert same(damaged.row(0), rows[0])
    with pytest.raises(HotlapError, match=rf"{part.file} is damaged .*rows {first} to"):
        damaged.row(first)
    with pytest.raises(HotlapError, match="damaged"):
        damaged.rows([0, first])


def test_a_truncated_part_is_refused(make: Make) -> None:
    found = make(mixed(25))
    path = found.folder / found.manifest.parts[-1].file
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(HotlapError, match="its manifest says"):
        Pack(found.folder)


def _change(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = read_json(folder / "pack.json")
    change(document)
    write_json(folder / "pack.json", document)


@pytest.mark.parametrize(("change", "message"), [
    (lambda d: d.update(version=2), "version 2; this Hotlap reads version 1"),
    (lambda d: d.update(format="other"), "not a pack's manifest"),
    (lambda d: d["parts"][0].update(file="../outside.arrow"), "not a plain file name"),
    (lambda d: d["parts"][0].update(file="/etc/passwd"), "not a plain file name"),
    (lambda d: d["parts"][0]["chunks"][0].__setitem__(1, 1 << 50), "inconsistent"),
    (lambda d: d["parts"][0]["chunks"][0][4].update(image=1 << 50), "inconsistent"),
    (lambda d: d["columns"][0].update(kind="pickle"), "cannot read"),
    (lambda d: d.pop("parts"), "damaged"),
])  # fmt: skip
def test_a_manifest_that_lies_is_refused(make: Make, change: Any, message: str) -> None:
    found = make(mixed(25))
    _change(found.folder, change)
    with pytest.raises(HotlapError, match=message):
        Pack(found.folder)


def test_no_pack_at_all(tmp_path: Path) -> None:
    with pytest.raises(HotlapError, match="no pack: there is no"):
        Pack(tmp_path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_rubbish_for_a_manifest_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pack.json").write_bytes(content)
    with pytest.raises(HotlapError):
        Pack(tmp_path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_fuzz_a_manifest_with_a_right_checksum(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Any number of the manifest may be anything: an error, or right rows, never another pack's bytes or a crash."""
    folder = _fuzz_pack(tmp_path_factory)
    document = json.loads(_FUZZ["text"])
    document.pop("crc")
    places = list(_leaves(document))
    where, key = places[data.draw(st.integers(0, len(places) - 1))]
    where[key] = data.draw(st.one_of(st.integers(-(2**40), 2**40), st.text(max_size=5), st.none(), st.floats()))
    write_json(folder / "pack.json", document)
    try:
        found = Pack(folder)
        for index in range(len(found)):
            found.row(index)
    except (HotlapError, IndexError):
        return


_FUZZ: dict[str, Any] = {}


def _fuzz_pack(factory: pytest.TempPathFactory) -> Path:
    if not _FUZZ:
        _FUZZ["folder"] = factory.mktemp("fuzz") / "p"
        pack(Rows(mixed(12), RAGGED), _FUZZ["folder"], PackSettings(chunk_bytes=1500, part_bytes=4000))
        _FUZZ["text"] = (_FUZZ["folder"] / "pack.json").read_text()
    return _FUZZ["folder"]


def _leaves(node: Any) -> Any:
    for key in node if isinstance(node, dict) else range(len(node)):
        if isinstance(node[key], dict | list):
            yield from _leaves(node[key])
        else:
            yield node, key


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb", "datasets"])
def test_others_read_a_part(make: Make, tmp_path: Path, library: str) -> None:
    other: Any = pytest.importorskip(library)
    import pyarrow as pa

    rows = mixed(30)
    found = make(rows, part_bytes=1 << 20)
    path = str(found.folder / found.manifest.parts[0].file)
    table = pa.ipc.open_file(path).read_all()
    many = table.num_rows
    if library == "pandas":
        frame = table.to_pandas()
        names, image = list(frame["name"]), np.array(frame["image"][3].tolist()).tolist()
    elif library == "polars":
        frame = other.read_ipc(path)
        names, image = frame["name"].to_list(), frame["image"].to_list()[3]
    elif library == "duckdb":
        kept = other.from_arrow(table).select("name", "image").fetchall()
        names, image = [n for n, _ in kept], kept[3][1]
    else:
        data = other.load_dataset("arrow", data_files=path, split="train", cache_dir=str(tmp_path / "cache"))
        names, image = list(data["name"]), data[3]["image"]
    assert names == [r["name"] for r in rows[:many]]
    assert np.array_equal(np.array(image, np.uint8).reshape(3, 12, 10), rows[3]["image"])


def test_a_manifest_that_cannot_be_read(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(mixed(3)).folder

    def forbidden(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", forbidden)
    with pytest.raises(HotlapError, match=r"pack\.json cannot be read: Permission denied"):
        Pack(folder)
