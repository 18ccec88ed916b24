"""Every kind of source: what it finds, and what it says of files that are not what they seem."""

from __future__ import annotations

import io
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from pack_support import jpeg, record, served, tar
from PIL import Image

from hotlap.pack import Pack, PackSettings, SourceOptions, open_source, pack
from hotlap.pack.sources.contract import BadRow
from hotlap.pack.sources.decode import check_image, decode_image
from hotlap.pack.sources.listing import list_folder
from hotlap.records.errors import HotlapError


def packed(spec: str, folder: Path, **options: object) -> Pack:
    pack(open_source(spec, SourceOptions(**options)), folder)  # type: ignore[arg-type]
    return Pack(folder)


def test_image_folder(pictures: Path, tmp_path: Path) -> None:
    found = packed(str(pictures), tmp_path / "p")
    assert found.metadata["classes"] == ["cat", "dog"] and found.values("label").tolist() == [0, 0, 0, 1, 1, 1]
    assert found.row(4)["name"] == "dog/4.jpg"
    assert np.array_equal(found.row(4)["image"], decode_image(jpeg(4)))


def test_linked_folders_are_followed(pictures: Path, tmp_path: Path) -> None:
    subset = tmp_path / "subset"
    subset.mkdir()
    (subset / "a").symlink_to(pictures / "cat")
    (subset / "b").symlink_to(pictures / "dog")
    (pictures / "cat" / "back").symlink_to(subset)
    assert list_folder(str(subset), (".jpg",)) == [f"{c}/{k}.jpg" for c, ks in (("a", "012"), ("b", "345")) for k in ks]


def test_images_of_many_sizes_stay_encoded_or_are_resized(pictures: Path, tmp_path: Path) -> None:
    (pictures / "dog" / "9.png").write_bytes(jpeg(9, (50, 40), "PNG"))
    found = packed(str(pictures), tmp_path / "auto")
    assert found.columns["image"].kind == "bytes" and found.row(6)["image"] == jpeg(9, (50, 40), "PNG")
    assert packed(str(pictures), tmp_path / "size", size=(20, 30)).columns["image"].shape == (3, 20, 30)
    with pytest.raises(HotlapError, match=r"dog/9.png.*\(3, 40, 50\)"):
        packed(str(pictures), tmp_path / "raw", store="raw")


def test_lists(pictures: Path, tmp_path: Path) -> None:
    (pictures / "list.txt").write_text("7 cat/0.jpg\ndog/3.jpg 11\n# no sample\n\n7, cat/1.jpg\n")
    found = packed(str(pictures / "list.txt"), tmp_path / "p")
    assert "classes" not in found.metadata and found.values("label").tolist() == [7, 11, 7]
    (pictures / "bad.txt").write_text("1 cat/0.jpg cat/1.jpg\n")
    with pytest.raises(HotlapError, match=r"bad.txt:1 should hold one file name"):
        open_source(str(pictures / "bad.txt"))


@pytest.mark.parametrize(("labels", "dtype", "packed_as"), [
    (["3", "-7"], "int64", [3, -7]),
    (["4.5", "1e-05"], "float64", [4.5, 1e-05]),
    (["4.5", "2"], "float64", [4.5, 2.0]),
    (["n3", "3"], "int64", [1, 0]),
])  # fmt: skip
def test_labels_of_a_list(pictures: Path, tmp_path: Path, labels: list[str], dtype: str, packed_as: list[Any]) -> None:
    (pictures / "list.txt").write_text(f"cat/0.jpg {labels[0]}\ndog/3.jpg {labels[1]}\n")
    found = packed(str(pictures / "list.txt"), tmp_path / "p")
    assert found.columns["label"].dtype == dtype and found.values("label").tolist() == packed_as
    assert found.metadata.get("classes") == (["3", "n3"] if "n3" in labels else None)


def test_one_number_in_two_spellings(pictures: Path) -> None:
    (pictures / "list.txt").write_text("cat/0.jpg 7\ndog/3.jpg 007\n")
    with pytest.raises(HotlapError, match=r"list.txt has the labels 7 and 007: two names, or one number\?"):
        open_source(str(pictures / "list.txt"))


@pytest.mark.parametrize("by_url", [False, True])
def test_a_class_without_files_counts(pictures: Path, tmp_path: Path, server: str, by_url: bool) -> None:
    for name in ("bird", ".hidden", "my.pack/.packing"):
        (pictures / name).mkdir(parents=True)
    if by_url:
        pytest.importorskip("fsspec")
        pytest.importorskip("aiohttp")
        (pictures / "my.pack" / ".packing").rmdir()  # whether it is a pack is not looked for
        (pictures / "my.pack").rmdir()
    found = packed(f"{server}/pictures" if by_url else str(pictures), tmp_path / "p")
    assert found.metadata["classes"] == ["bird", "cat", "dog"] and found.values("label").tolist() == [1, 1, 1, 2, 2, 2]


def wav(path: Path, frames: int, seed: int = 0, subtype: str = "PCM_16") -> np.ndarray:
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(seed).integers(-3000, 3000, frames).astype(np.int16)
    soundfile.write(path, samples, 16000, subtype)
    return samples


def test_recordings_of_a_speaker_list(tmp_path: Path) -> None:
    written = [wav(tmp_path / f"id{k % 2}/{k}.wav", 100 + 50 * k, k) for k in range(4)]
    (tmp_path / "list.txt").write_text("".join(f"id{k % 2} id{k % 2}/{k}.wav\n" for k in range(4)))
    found = packed(str(tmp_path / "list.txt"), tmp_path / "p")
    assert all(np.array_equal(found.row(k)["audio"], w) for k, w in enumerate(written))
    assert found.lengths("audio").tolist() == [100, 150, 200, 250] and found.values("rate").tolist() == [16000] * 4


@pytest.mark.parametrize("subtypes", [("PCM_24", "PCM_16"), ("PCM_16", "PCM_24")])
def test_recordings_of_two_scales_are_refused(tmp_path: Path, subtypes: tuple[str, str]) -> None:
    for k, subtype in enumerate(subtypes):
        wav(tmp_path / f"both/{k}.wav", 100, subtype=subtype)
        wav(tmp_path / f"only{k}/{k}.wav", 100, subtype=subtype)
    tar(tmp_path / "both.tar", {f"{k}.wav": (tmp_path / f"both/{k}.wav").read_bytes() for k in range(2)})
    for number, spec in enumerate(("both", "both.tar")):
        with pytest.raises(HotlapError, match=r"1(\.wav)?: Column 'audio' holds .*another scale .*16 bits and 24"):
            packed(str(tmp_path / spec), tmp_path / f"p{number}")
    packed(str(tmp_path / "only0"), tmp_path / "q")
    with pytest.raises(HotlapError, match="another scale"):
        pack(open_source(str(tmp_path / "only1")), tmp_path / "q", PackSettings(append=True))


def test_spoofing_protocol(tmp_path: Path) -> None:
    for k in range(3):
        wav(tmp_path / f"flac/T_{k}.flac", 64, k)
    (tmp_path / "protocols").mkdir()
    (tmp_path / "protocols/dev.txt").write_text("S1 T_0 - - bonafide\nS2 T_1 - A01 spoof\nS1 T_2 - A02 spoof\n")
    found = packed(str(tmp_path / "protocols/dev.txt"), tmp_path / "p")
    assert found.values("label").tolist() == [1, 0, 0] and found.values("speaker").tolist() == [0, 1, 0]
    assert found.metadata["attacks"] == ["-", "A01", "A02"]


def test_identity_json_with_pairs(pictures: Path, tmp_path: Path) -> None:
    document = {"a": ["cat/0.jpg", "cat/1.jpg"], "b": ["dog/3.jpg"]}
    (pictures / "x_dataset_infor.json").write_text(json.dumps(document))
    (pictures / "x_twin_pairs_infor.json").write_text(json.dumps([["b", "a"], ["a", "unknown"]]))
    found = packed(str(pictures / "x_dataset_infor.json"), tmp_path / "p")
    assert found.values("label").tolist() == [0, 0, 1] and found.metadata["pairs"] == [[1, 0]]
    (pictures / "bad.json").write_text(json.dumps({"a": ["../secret.jpg"]}))
    with pytest.raises(HotlapError, match="outside its folder"):
        open_source(str(pictures / "bad.json"))


def test_coco(pictures: Path, tmp_path: Path) -> None:
    boxes = {0: [], 1: [[1, 2, 3, 4]], 2: [[0, 0, 5, 5], [2, 2, 9, 9]]}
    document = {
        "images": [{"id": 10 + k, "file_name": f"cat/{k}.jpg", "height": 24, "width": 32} for k in range(3)],
        "annotations": [
            {"image_id": 10 + k, "bbox": b, "category_id": 7, "iscrowd": 0} for k in boxes for b in boxes[k]
        ],
        "categories": [{"id": 7, "name": "seven"}, {"id": 3, "name": "three"}],
    }
    (pictures / "instances.json").write_text(json.dumps(document))
    found = packed(str(pictures / "instances.json"), tmp_path / "p")
    assert [found.row(k)["boxes"].tolist() for k in range(3)] == list(boxes.values())
    assert found.row(2)["category"].tolist() == [1, 1] and found.metadata["classes"] == ["three", "seven"]


@pytest.mark.parametrize(("change", "message"), [
    (lambda d: d["annotations"][0].pop("bbox"), r"'category_id': 7.*, one of its annotations, has no bbox"),
    (lambda d: d["annotations"][0].update(category_id=8), "'category_id': 8.* is of no category"),
    (lambda d: d["annotations"][0].update(bbox=[1, 2]), "no box of four numbers"),
    (lambda d: d["images"][1].pop("height"), "cat/1.jpg.*has no height"),
    (lambda d: d["images"].append("cat/9.jpg"), "'cat/9.jpg', one of its images, has no id"),
    (lambda d: d.update(annotations={}), "annotations are no list"),
    (lambda d: d.update(categories=[{"id": 7}]), "has no name"),
])  # fmt: skip
def test_coco_that_is_no_good(pictures: Path, change: Callable[[Any], None], message: str) -> None:
    document = {
        "images": [{"id": k, "file_name": f"cat/{k}.jpg", "height": 24, "width": 32} for k in range(2)],
        "annotations": [{"image_id": 0, "category_id": 7, "bbox": [0, 0, 5, 5]}],
        "categories": [{"id": 7, "name": "seven"}],
    }
    open_source(str(written(pictures / "good.json", document)))
    change(document)
    with pytest.raises(HotlapError, match=f"bad.json: .*{message}"):
        open_source(str(written(pictures / "bad.json", document)))


def written(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("content", ["[[", "7", "[7]", '[[["a"]]]'])
def test_pairs_that_are_no_good(pictures: Path, content: str) -> None:
    path = written(pictures / "x_dataset_infor.json", {"a": ["cat/0.jpg"], "b": ["dog/3.jpg"]})
    (pictures / "x_twin_pairs_infor.json").write_text(content)
    with pytest.raises(HotlapError, match=r"x_twin_pairs_infor\.json is no list of pairs"):
        open_source(str(path))


@pytest.mark.parametrize(("index", "message"), [("", "is empty"), ("0\t0\n1\n", "no index"), ("0 x\n", "no index"),
                                                ("ö\n", "no index")])  # fmt: skip
def test_an_index_of_records_that_is_no_good(tmp_path: Path, index: str, message: str) -> None:
    (tmp_path / "train.rec").write_bytes(record(1.0, jpeg(0)))
    (tmp_path / "train.idx").write_text(index)
    with pytest.raises(HotlapError, match=f"train.idx .*{message}.*Remove it"):
        open_source(str(tmp_path / "train.rec"))
    (tmp_path / "train.idx").unlink()
    assert len(open_source(str(tmp_path / "train.rec"))) == 1
    (tmp_path / "folder.rec").mkdir()
    with pytest.raises(HotlapError, match=r"folder\.rec cannot be read"):
        open_source(str(tmp_path / "folder.rec"))


def test_arrays_are_read_and_pickles_are_not(tmp_path: Path) -> None:
    import torch

    x, y = np.arange(12.0).reshape(4, 3), np.arange(4)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    torch.save({"x": torch.from_numpy(x), "y": torch.from_numpy(y)}, tmp_path / "a.pt")
    np.save(tmp_path / "a.npy", x)
    for name, column in (("a.npz", "x"), ("a.pt", "x"), ("a.npy", "data")):
        assert np.array_equal(packed(str(tmp_path / name), tmp_path / f"p{name}").values(column), x)
    np.save(tmp_path / "o.npy", np.array([object()]), allow_pickle=True)
    torch.save({"x": pytest}.__class__, tmp_path / "o.pt")
    for name in ("o.npy", "o.pt"):
        with pytest.raises(HotlapError, match="never read"):
            open_source(str(tmp_path / name))


def test_any_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_sets.py").write_text(
        "class Squares:\n    def __len__(self): return 9\n    def __getitem__(self, k): return [k, k], k * k\n"
        "class Endless:\n    def __iter__(self): return iter(())\n"
    )
    monkeypatch.chdir(tmp_path)
    pack(open_source("my_sets:Squares"), tmp_path / "p", PackSettings(processes=2))
    assert Pack(tmp_path / "p").values("field1").tolist() == [k * k for k in range(9)]
    for spec, message in (("my_sets:Nothing", "cannot be imported"), ("my_sets:Endless", "map-style")):
        with pytest.raises(HotlapError, match=message):
            open_source(spec)


def test_webdataset(tmp_path: Path) -> None:
    for shard in range(2):
        samples = {f"s{shard}{k}.{end}": content for k in range(3)
                   for end, content in (("jpg", jpeg(k)), ("cls", str(k).encode()), ("json", b"{}"))}  # fmt: skip
        tar(tmp_path / f"shard-{shard:03d}.tar", samples)
    found = packed(str(tmp_path / "shard-{000..001}.tar"), tmp_path / "p")
    assert found.values("label").tolist() == [0, 1, 2] * 2 and found.row(5)["name"] == "s12"
    assert np.array_equal(found.row(5)["image"], decode_image(jpeg(2)))
    tar(tmp_path / "bad.tar", {"a.jpg": jpeg(0), "a.pyd": b"\x80\x04."})
    with pytest.raises(HotlapError, match="never unpickled"):
        packed(str(tmp_path / "bad.tar"), tmp_path / "bad")


def test_a_damaged_tar_is_not_taken_for_a_short_one(tmp_path: Path) -> None:
    tar(tmp_path / "s.tar", {f"{k}.cls": b"7" for k in range(3)})  # a header and a block for each
    whole = (tmp_path / "s.tar").read_bytes()
    for damaged in (whole[: 2 * 1024] + b"x" * 512 + whole[5 * 512 :], whole[: 2 * 1024 + 100]):
        (tmp_path / "bad.tar").write_bytes(damaged)
        with pytest.raises(HotlapError, match=r"bad.tar is damaged at byte 2048"):
            open_source(str(tmp_path / "bad.tar"))
    for short in (whole[: 3 * 1024], whole[: 3 * 1024 + 512]):  # without zeros, or with few, at its end
        (tmp_path / "short.tar").write_bytes(short)
        assert len(open_source(str(tmp_path / "short.tar"))) == 3


def test_keys_of_tars(tmp_path: Path) -> None:
    for shard in range(2):
        tar(tmp_path / f"{shard}.tar", {f"{k}.cls": b"%d" % (2 * shard + k) for k in range(2)})
    found = packed(str(tmp_path / "{0..1}.tar"), tmp_path / "p")
    assert found.values("label").tolist() == [0, 1, 2, 3], "keys that begin again in each shard"
    for twice in ([("a.cls", b"1"), ("a.cls", b"2")], [("a.cls", b"1"), ("b.cls", b"2"), ("a.cls", b"3")]):
        tar(tmp_path / "twice.tar", twice)
        with pytest.raises(HotlapError, match=r"a is there twice \(rows 0 and"):
            packed(str(tmp_path / "twice.tar"), tmp_path / f"q{len(twice)}")


def test_images_of_tars_by_any_name_in_any_row(tmp_path: Path) -> None:
    tar(tmp_path / "views.tar", {f"{k}.{eye}.jpg": jpeg(k) for k in range(2) for eye in ("left", "right")})
    assert packed(str(tmp_path / "views.tar"), tmp_path / "p").columns["left.jpg"].shape == (3, 24, 32)
    tar(tmp_path / "late.tar", {"a.cls": b"1", "b.png": jpeg(0, kind="PNG"), "b.cls": b"2"})
    source = open_source(str(tmp_path / "late.tar"))
    assert source.row(1)["image"].shape == (3, 24, 32)


def test_a_row_of_two_images_has_two_columns(tmp_path: Path) -> None:
    images = {f"{k}.{end}": jpeg(2 * k + n, kind=kind) for k in range(2)
              for n, (end, kind) in enumerate((("jpg", "JPEG"), ("seg.png", "PNG")))}  # fmt: skip
    tar(tmp_path / "s.tar", images)
    source = open_source(str(tmp_path / "s.tar"))
    row = source.row(0)
    assert set(row) == {"jpg", "seg.png", "name"} and not np.array_equal(row["jpg"], row["seg.png"])


def mask(mode: str) -> bytes:
    """Two classes, 3 and 200, side by side."""
    image = Image.fromarray(np.repeat(np.array([[3, 200]], np.uint8), 16, 1).repeat(24, 0))
    if mode == "P":
        image = image.copy()
        image.putpalette(bytes(255 - k for k in range(256) for _ in range(3)))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def test_masks_keep_the_numbers_of_their_classes(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for mode in ("L", "P"):
        tar(tmp_path / f"{mode}.tar", {"0.jpg": jpeg(0), "0.seg.png": mask(mode)})
        pq.write_table(pa.table({"image": [jpeg(0)], "seg.png": [mask(mode)]}), tmp_path / f"{mode}.parquet")
    for kind in ("tar", "parquet"):
        with pytest.raises(HotlapError, match=r"--size does not go with rows of several images"):
            open_source(str(tmp_path / f"L.{kind}"), SourceOptions(size=(12, 15)))
        assert np.unique(packed(str(tmp_path / f"L.{kind}"), tmp_path / kind).row(0)["seg.png"]).tolist() == [3, 200]
        with pytest.raises(HotlapError, match=r"an image with a palette \(mode P\).*Save it as grey"):
            packed(str(tmp_path / f"P.{kind}"), tmp_path / f"P{kind}")
    assert packed(str(tmp_path / "P.tar"), tmp_path / "e", store="encoded").row(0)["seg.png"] == mask("P")
    assert decode_image(mask("P"))[0, 0, 0] == 252


@pytest.mark.parametrize("with_index", [True, False])
def test_recordio(tmp_path: Path, with_index: bool) -> None:
    records = [record([4.0, 6.0], b""), *(record(float(k), jpeg(k)) for k in range(3)), record([1.0, 2.0], b"")]
    (tmp_path / "train.rec").write_bytes(b"".join(records))
    if with_index:
        ends = np.cumsum([0, *map(len, records)])
        (tmp_path / "train.idx").write_text("".join(f"{k}\t{at}\n" for k, at in enumerate(ends[:-1])))
    found = packed(str(tmp_path / "train.rec"), tmp_path / "p")
    assert found.values("label").tolist() == [0, 1, 2]
    assert np.array_equal(found.row(2)["image"], decode_image(jpeg(2)))


def test_records_of_two_labels_and_an_image_are_all_kept(tmp_path: Path) -> None:
    (tmp_path / "train.rec").write_bytes(b"".join(record([2.0, k + 0.5], jpeg(k)) for k in range(3)))
    found = packed(str(tmp_path / "train.rec"), tmp_path / "p")
    assert found.values("label").tolist() == [[2.0, 0.5], [2.0, 1.5], [2.0, 2.5]]


def test_labels_of_records_are_of_one_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hotlap.pack.sources import recordio

    (tmp_path / "age.rec").write_bytes(b"".join(record(30 + k / 2, jpeg(k)) for k in range(3)))
    found = packed(str(tmp_path / "age.rec"), tmp_path / "p")
    assert found.columns["label"].dtype == "float32" and found.values("label").tolist() == [30.0, 30.5, 31.0]
    monkeypatch.setattr(recordio, "_PROBED", 1)
    with pytest.raises(HotlapError, match=r"has the label 30\.5, others are whole numbers"):
        packed(str(tmp_path / "age.rec"), tmp_path / "q")


def test_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({
        "image": [{"bytes": jpeg(k), "path": None} for k in range(7)],
        "label": list(range(7)),
        "boxes": [[float(k)] * k for k in range(7)],
        "text": [f"t{k}" for k in range(7)],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    found = packed(str(tmp_path / "a.parquet"), tmp_path / "p")
    assert np.array_equal(found.row(6)["image"], decode_image(jpeg(6)))
    assert found.row(5)["boxes"].tolist() == [5.0] * 5 and found.row(3)["text"] == "t3"


@pytest.mark.parametrize("first", [None, b"", b"not an image"])
def test_images_of_parquet_begin_in_any_row(tmp_path: Path, first: bytes | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, empty in (("near", 3), ("far", 60)):
        contents = [first] * empty + [jpeg(k) for k in range(40)]
        pq.write_table(pa.table({"image": contents, "raw": [b"x"] * len(contents)}), tmp_path / f"{name}.parquet", 9)
        source = open_source(str(tmp_path / f"{name}.parquet"), SourceOptions(store="raw"))
        found = pack(source, tmp_path / name, PackSettings(on_error="quarantine"))
        assert (found.rows, found.left_out) == (40, empty)
        columns = Pack(tmp_path / name).columns
        assert columns["image"].shape == (3, 24, 32) and columns["raw"].kind == "bytes"


def test_hugging_face(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])})
    pictures = [Image.open(io.BytesIO(jpeg(k))) for k in range(4)]
    data = datasets.Dataset.from_dict({"image": pictures, "label": [0, 1, 1, 0]}, features=features)
    data.save_to_disk(str(tmp_path / "hf"))
    found = packed(f"hf:{tmp_path / 'hf'}", tmp_path / "p")
    assert found.values("label").tolist() == [0, 1, 1, 0] and found.metadata["classes"] == ["a", "b"]
    assert found.columns["image"].shape == (3, 24, 32)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The temporary folder by HTTP, on loopback."""
    with served(tmp_path) as address:
        yield address


def test_urls(pictures: Path, tmp_path: Path, server: str) -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    (pictures / "list.txt").write_text("0 cat/0.jpg\n1 dog/3.jpg\n")
    found = packed(f"{server}/pictures/list.txt", tmp_path / "p")
    assert np.array_equal(found.row(1)["image"], decode_image(jpeg(3)))
    (pictures / "list.txt").write_text("0 cat/0.jpg\n1 dog/missing.jpg\n")
    with pytest.raises(HotlapError, match=r"missing.jpg cannot be read"):
        packed(f"{server}/pictures/list.txt", tmp_path / "q")


def test_a_folder_and_annotations_by_url(pictures: Path, tmp_path: Path, server: str) -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    found = packed(f"{server}/pictures", tmp_path / "p")
    assert found.values("label").tolist() == [0, 0, 0, 1, 1, 1] and found.metadata["classes"] == ["cat", "dog"]
    assert [found.row(k)["name"] for k in (0, 5)] == ["cat/0.jpg", "dog/5.jpg"]
    assert np.array_equal(found.row(4)["image"], decode_image(jpeg(4)))
    (pictures / "lists").mkdir()
    (pictures / "lists" / "train.txt").write_text("b dog/3.jpg\na cat/0.jpg\n")
    there = packed(f"{server}/pictures/lists/train.txt", tmp_path / "q", root=f"{server}/pictures")
    assert there.values("label").tolist() == [1, 0] and np.array_equal(there.row(1)["image"], decode_image(jpeg(0)))
    (pictures / "lists" / "train.txt").write_text("../secret.jpg\n")
    with pytest.raises(HotlapError, match="out of"):
        packed(f"{server}/pictures/lists/train.txt", tmp_path / "r")
    with pytest.raises(HotlapError, match=r"nowhere cannot be listed: it is not there"):
        packed(f"{server}/nowhere", tmp_path / "s")


def test_a_connection_that_ends_in_a_list_is_told(pictures: Path, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    (pictures / "list.txt").write_text("0 cat/0.jpg\n1 dog/3.jpg\n")
    with served(pictures, "list.txt") as address, pytest.raises(HotlapError, match=r"list.txt cannot.* again"):
        packed(f"{address}/list.txt", tmp_path / "p")


def png_of(width: int, height: int) -> bytes:
    """A PNG whose header claims any size."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c)) for k, c in chunks
    )


@pytest.mark.parametrize(("content", "message"), [
    (b"", "0 bytes"),
    (b"not an image at all", "not an image"),
    (jpeg(0)[:200], "damaged|truncated|not an image"),
    (jpeg(0, (300, 200))[:-80], "damaged"),
    (png_of(100_000, 100_000), "at most|exceeds limit"),
    (png_of(6000, 12_000), "at most"),
    (png_of(30, 30), "damaged"),
    (b"\x89PNG\r\n\x1a\n" + b"\xff" * 60, "not an image"),
])  # fmt: skip
@pytest.mark.parametrize("store", ["raw", "encoded"])
def test_files_that_are_no_good(pictures: Path, tmp_path: Path, content: bytes, message: str, store: str) -> None:
    (pictures / "dog" / "4.jpg").write_bytes(content)
    with pytest.raises(HotlapError, match=f"dog/4.jpg: .*({message})"):
        packed(str(pictures), tmp_path / "stop", store=store)
    source = open_source(str(pictures), SourceOptions(store=store))
    found = pack(source, tmp_path / "q", PackSettings(on_error="quarantine"))
    assert found.rows == 5 and found.left_out == 1
    assert "dog/4.jpg" in (tmp_path / "q" / "left_out.jsonl").read_text()


@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_that_stays_encoded_is_refused_where_decoding_it_is(progressive: bool) -> None:
    picture = Image.open(io.BytesIO(jpeg(5, (90, 70))))
    out = io.BytesIO()
    picture.save(out, "JPEG", progressive=progressive)
    whole, g = out.getvalue(), np.random.default_rng(7)
    refused = 0
    for _ in range(400):
        content = bytearray(whole)
        content[int(g.integers(len(content)))] ^= int(g.integers(1, 256))
        if g.random() < 0.2:
            del content[int(g.integers(len(content))) :]
        said = []
        for read in (check_image, decode_image):
            try:
                read(bytes(content))
            except BadRow:
                said.append("refused")
            else:
                said.append("taken")
        assert said[0] == said[1]
        refused += said[0] == "refused"
    assert 40 < refused < 360


def test_names_that_are_no_good(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.jpg").write_bytes(jpeg(0))
    (pictures / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    for name in ("../secret.jpg", str(tmp_path / "secret.jpg"), "link.jpg"):
        (pictures / "list.txt").write_text(f"cat/0.jpg\n{name}\n")
        with pytest.raises(HotlapError, match="out of"):
            packed(str(pictures / "list.txt"), tmp_path / "p")
        (tmp_path / "p").exists() and __import__("shutil").rmtree(tmp_path / "p")
    (pictures / "list.txt").write_text("cat/0.jpg\ncat/1.jpg\ncat/0.jpg\n")
    with pytest.raises(HotlapError, match="listed twice"):
        packed(str(pictures / "list.txt"), tmp_path / "twice")
    with pytest.raises(HotlapError, match="does not exist"):
        open_source(str(tmp_path / "nowhere"))


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hotlap.pack.sources import read

    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg(0))

    def stat(name: str) -> os.stat_result:
        path.write_bytes(jpeg(0)[::-1])  # of the same size
        return os.stat(name)

    monkeypatch.setattr(read, "os", SimpleNamespace(fstat=os.fstat, open=os.open, stat=stat))
    with pytest.raises(BadRow, match="changed while"):
        read.read_file(str(path))
