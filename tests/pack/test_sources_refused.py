"""Documents, tables, arrays and data sets that cannot be packed: one sentence with the place, and no traceback."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pack_support import Rows

from hotlap.pack import Pack, PackSettings, SourceOptions, open_source, pack
from hotlap.pack.sources import arrays, hugging
from hotlap.records.errors import HotlapError

COCO = {
    "images": [{"id": k, "file_name": f"cat/{k}.jpg", "height": 24, "width": 32} for k in range(2)],
    "annotations": [{"image_id": 0, "category_id": 7, "bbox": [0, 0, 5, 5]}],
    "categories": [{"id": 7, "name": "seven"}],
}


@pytest.mark.parametrize(("change", "message"), [
    (lambda d: d["annotations"].extend([{"image_id": 9, "category_id": 7, "bbox": [0] * 4}] * 2),
     "2 of its annotations are of images that it does not list; the first image_id is 9"),
    (lambda d: d["annotations"][0].update(image_id=[0]), r"has \[0\] for its image_id, which is no whole number"),
    (lambda d: d["annotations"][0].update(bbox=["x", 0, 1, 2]), "no box of four numbers"),
    (lambda d: d["annotations"][0].update(bbox=[[1], 0, 1, 2]), "no box of four numbers"),
    (lambda d: d["annotations"][0].update(iscrowd="no"), "iscrowd that is neither 0 nor 1"),
    (lambda d: d["images"][0].update(id="a"), "has 'a' for its id, which is no whole number"),
    (lambda d: d["images"][0].update(id=1), "two of its images have the id 1"),
    (lambda d: d["images"][0].update(file_name=5), "file_name that is no text"),
    (lambda d: d["images"][0].update(height=None), "has None for its height"),
    (lambda d: d["images"][0].update(height=1 << 40), "for its height"),
    (lambda d: d["categories"].append({"id": "b", "name": "b"}), "has 'b' for its id"),
])  # fmt: skip
def test_annotations(pictures: Path, change: Callable[[Any], None], message: str) -> None:
    document = json.loads(json.dumps(COCO))
    change(document)
    (pictures / "bad.json").write_text(json.dumps(document))
    with pytest.raises(HotlapError, match=f"bad.json: .*{message}"):
        open_source(str(pictures / "bad.json"))


@pytest.mark.parametrize(("content", "message"), [
    ('{"a": ["x.jpg", 1]}', "'a' has an image that is no file name: 1"),
    ('{"a": [{"p": 1}]}', "no file name: {'p': 1}"),
    ("[" * 100_000, "no.* JSON that can be read"),
])  # fmt: skip
def test_identities(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(HotlapError, match=f"a.json.* {message}"):
        open_source(str(tmp_path / "a.json"))


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    short = pa.array([[1, 2], [3, 4]], pa.list_(pa.int16(), 2))
    table = pa.table({
        "small": pa.array([1, 2], pa.int8()), "unsigned": pa.array([1, 2], pa.uint32()), "fixed": short,
        "single": pa.array([0.5, 2], pa.float32()), "list": pa.array([[], [1.0]], pa.list_(pa.float32())),
        "nested": pa.array([[[1]], [[2]]], pa.list_(pa.list_(pa.int32()))), "long": [1, 2], "double": [0.5, 1.0],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet")
    pack(open_source(str(tmp_path / "a.parquet")), tmp_path / "p")
    found = {name: column.dtype for name, column in Pack(tmp_path / "p").columns.items()}
    assert found == {"small": "int8", "unsigned": "uint32", "fixed": "int16", "single": "float32", "list": "float32",
                     "nested": "int32", "long": "int64", "double": "float64"}  # fmt: skip
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(HotlapError, match="source is empty"):
        pack(open_source(str(tmp_path / "empty.parquet")), tmp_path / "q")
    pq.write_table(pa.table({"x": pa.array([[1.0, None]], pa.list_(pa.float32()))}), tmp_path / "null.parquet")
    with pytest.raises(HotlapError, match=r"empty \(null\) entries"):
        pack(open_source(str(tmp_path / "null.parquet")), tmp_path / "r")


def test_parquet_files_of_a_folder_may_differ_in_type(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "d").mkdir()
    for name, values in (("a", pa.array([1, 2], pa.int32())), ("b", pa.array([0.5], pa.float32()))):
        pq.write_table(pa.table({"x": values}), tmp_path / "d" / f"{name}.parquet")
    with pytest.raises(HotlapError, match=r"b.parquet\[0\]: .*holds int32, this row has float32"):
        pack(open_source(str(tmp_path / "d")), tmp_path / "p")


def test_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    np.save(tmp_path / "A.NPY", np.arange(3))
    (tmp_path / "A.NPY.npy").rename(tmp_path / "A.NPY")
    torch.save(torch.arange(3), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    for name in ("A.NPY", "old.pt"):
        pack(open_source(str(tmp_path / name)), tmp_path / f"p{name}")
        assert Pack(tmp_path / f"p{name}").values("data").tolist() == [0, 1, 2]
    np.savez_compressed(tmp_path / "a.npz", x=np.arange(10_000))
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "damaged.npz").write_bytes(whole[:300] + b"\xff" * 40 + whole[340:])
    (tmp_path / "short.npz").write_bytes(whole[:200])
    (tmp_path / "short.npy").write_bytes((tmp_path / "A.NPY").read_bytes()[:-4])
    (tmp_path / "empty.pt").write_bytes(b"")
    (tmp_path / "text.pt").write_bytes(b"hello")
    for name in ("damaged.npz", "short.npz", "short.npy"):
        with pytest.raises(HotlapError, match=f"{name} cannot be read: .*Is it whole"):
            open_source(str(tmp_path / name))
    for name in ("empty.pt", "text.pt"):
        with pytest.raises(HotlapError, match=f"{name} holds more than tensors, or is damaged"):
            open_source(str(tmp_path / name))
    monkeypatch.setattr(arrays, "memory_bytes", lambda: 100_000)
    with pytest.raises(HotlapError, match=r"a.npz takes 80128 bytes unpacked; at most 50000"):
        open_source(str(tmp_path / "a.npz"))


def test_tars_that_cannot_be_read(tmp_path: Path) -> None:
    for name, content, message in (("gzip", b"\x1f\x8b\x08" * 500, "Compressed tars must be unpacked"),
                                   ("text", b"hello" * 500, "Is it whole"), ("short", b"", "Is it whole")):  # fmt: skip
        (tmp_path / f"{name}.tar").write_bytes(content)
        with pytest.raises(HotlapError, match=f"{name}.tar cannot be read: .*{message}"):
            open_source(str(tmp_path / f"{name}.tar"))
    with pytest.raises(HotlapError, match=r"s-0.tar cannot be read: No such file or directory. Name files"):
        open_source(str(tmp_path / "s-{0..1}.tar"))


def test_an_index_of_records_that_leads_out_of_them(tmp_path: Path) -> None:
    (tmp_path / "a.rec").write_bytes(bytes(100))
    for at in (-5, 100):
        (tmp_path / "a.idx").write_text(f"0\t0\n1\t{at}\n")
        with pytest.raises(HotlapError, match=f"a.idx: record 1 is at byte {at} of a file of 100. Remove it"):
            open_source(str(tmp_path / "a.rec"))


@pytest.mark.parametrize("name", ["a.npy", "a.pt", "a.tar", "a.rec", "a.parquet"])
def test_urls_of_what_is_read_from_a_disk(name: str) -> None:
    with pytest.raises(HotlapError, match="hotlap stage"):
        open_source(f"http://127.0.0.1:1/{name}")


def test_urls_of_annotations_and_names_of_nothing(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotlap.pack.sources.read_file", lambda _: json.dumps(COCO).encode())
    with pytest.raises(HotlapError, match="--root URL"):
        open_source("http://127.0.0.1:1/a.json")
    with pytest.raises(HotlapError, match="hf: names no data set"):
        open_source("hf:")
    with pytest.raises(HotlapError, match="--root is where the names in a list lie"):
        open_source(str(pictures), SourceOptions(root=str(pictures)))


@pytest.mark.parametrize(("spec", "found"), [("", 0), ("#test", 1), ("#dev", "holds the splits train, test, no 'dev'")])
def test_splits_of_a_saved_data_set(tmp_path: Path, spec: str, found: int | str) -> None:
    whole, part = SimpleNamespace(split="train"), SimpleNamespace(split="test")
    library = SimpleNamespace(load_from_disk=lambda _: {"train": whole, "test": part})
    (tmp_path / "dataset_dict.json").write_text("{}")
    if isinstance(found, str):
        with pytest.raises(HotlapError, match=found):
            hugging._open(library, f"{tmp_path}{spec}")
    else:
        assert hugging._open(library, f"{tmp_path}{spec}") is (whole, part)[found]
    single = SimpleNamespace(load_from_disk=lambda _: part)
    assert hugging._open(single, str(tmp_path)) is hugging._open(single, f"{tmp_path}#test") is part
    with pytest.raises(HotlapError, match="holds the splits test, no 'train'"):
        hugging._open(single, f"{tmp_path}#train")


SETS = """
class Set:
    def __init__(self): pass
    def __len__(self): return 1
    def __getitem__(self, k): return k
class Fails(Set):
    def __init__(self): open("/nowhere/at/all")
class NoLength(Set):
    def __len__(self): raise RuntimeError("unknown")
class Wants(Set):
    def __init__(self, path): pass
class Confused(Set):
    def __init__(self): len(7)
"""


@pytest.mark.parametrize(("spec", "message"), [
    ("my_odd_sets:Fails", r"my_odd_sets:Fails\(\) failed: FileNotFoundError: .* \(.*my_odd_sets.py:7\)"),
    ("my_odd_sets:NoLength", r"len\(my_odd_sets:NoLength\) failed: RuntimeError: unknown \(.*my_odd_sets.py:9\)"),
    ("my_odd_sets:Wants", "cannot be made without arguments"),
    ("my_odd_sets:Confused", r"TypeError: .* \(.*my_odd_sets.py:13\)"),
    ("my_bad_import:Set", r"Importing my_bad_import failed: RuntimeError: no \(.*my_bad_import.py:1\)"),
    ("my_bad_syntax:Set", r"SyntaxError: .*my_bad_syntax.py, line 1"),
])  # fmt: skip
def test_data_sets_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, message: str) -> None:
    (tmp_path / "my_odd_sets.py").write_text(SETS)
    (tmp_path / "my_bad_import.py").write_text("raise RuntimeError('no')\n")
    (tmp_path / "my_bad_syntax.py").write_text("def (\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(HotlapError, match=message):
        open_source(spec)


def tensors() -> dict[str, Any]:
    import torch

    return {"bfloat16": torch.zeros(2, dtype=torch.bfloat16), "sparse_coo": torch.eye(3).to_sparse()}


@pytest.mark.parametrize(("row", "message"), [
    ({}, "rows have no columns"),
    ({"x": [[1, 2], [3]]}, r"Column 'x' holds \[\[1, 2\], \[3\]\], which is no array"),
    ({"x": np.zeros((0, 4))}, r"rows of shape \(0, 4\), which hold nothing"),
    ({"x": np.zeros((3, 0))}, r"rows of shape \(3, 0\), which hold nothing"),
    ({"x": "\udcff"}, "text that is no UTF-8"),
    ({"x": "bfloat16"}, "tensor of bfloat16"),
    ({"x": "sparse_coo"}, "sparse_coo tensor"),
])  # fmt: skip
def test_values_that_a_pack_cannot_hold(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    held = {name: tensors().get(value, value) if isinstance(value, str) else value for name, value in row.items()}
    with pytest.raises(HotlapError, match=message):
        pack(Rows([held]), tmp_path / "p")


def test_a_column_that_is_named_and_not_there(tmp_path: Path) -> None:
    with pytest.raises(HotlapError, match="--ragged y: the columns are x"):
        pack(Rows([{"x": [1]}]), tmp_path / "p", PackSettings(ragged=frozenset({"y"})))


def test_what_is_unpacked_in_memory_is_not_unpacked_by_each_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(40))
    source = open_source(str(tmp_path / "a.npz"))
    with pytest.raises(TypeError, match="once is enough"):
        pickle.dumps(source)
    monkeypatch.setattr(arrays, "_load", lambda path: pytest.fail("unpacked again"))
    assert pack(source, tmp_path / "p", PackSettings(processes=2)).rows == 40


def test_memory_that_a_tensor_asks_for_in_vain_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")

    def full(*_: object, **__: object) -> None:
        raise MemoryError

    torch.save(torch.zeros(3), tmp_path / "a.pt")
    monkeypatch.setattr(torch, "load", full)
    with pytest.raises(HotlapError, match=r"a\.pt cannot be read: MemoryError\."):
        open_source(str(tmp_path / "a.pt"))
