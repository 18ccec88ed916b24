"""Boxes, COCO json and average precision, against independent implementations and by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from coco_by_hand import by_hand

from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.boxes import corners, giou
from hotlap_workloads.parts.coco_json import Labelled, read_coco
from hotlap_workloads.parts.detection_ap import Found, average_precision


def labelled(boxes: Any, labels: Any, crowd: Any = None) -> Labelled:
    boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
    none = np.zeros(len(boxes), np.bool_)
    return Labelled(boxes, np.asarray(labels, np.int64), boxes[:, 2:].prod(1), none if crowd is None else crowd)


def drawn(seed: int, images: int = 12, most: int = 25) -> tuple[list[Labelled], list[Found]]:
    """Objects, and detections that are moved objects, doubles, or of nothing; equal scores and crowds among them."""
    random = np.random.default_rng(seed)
    truths, found = [], []
    for _ in range(images):
        count = int(random.integers(0, most))
        boxes = np.concatenate([random.uniform(0, 200, (count, 2)), random.uniform(4, 70, (count, 2))], axis=1)
        labels = random.integers(0, 3, count)
        truths.append(labelled(boxes, labels, random.random(count) < 0.1))
        moved = boxes[random.integers(0, count, 2 * count)] if count else boxes
        moved = moved + random.normal(0, 2, moved.shape)
        moved[:, 2:] = np.abs(moved[:, 2:]) + 1
        stray = np.concatenate([random.uniform(0, 200, (6, 2)), random.uniform(4, 70, (6, 2))], axis=1)
        offered = np.concatenate([moved, stray])
        found.append(
            Found(offered, random.integers(0, 3, len(offered)), random.uniform(0, 1, len(offered)).round(seed % 2 + 1))
        )
    # the first detection overlaps both objects alike; which one it takes decides what is left for the second
    truths.append(labelled([[0, 0, 10, 10], [6, 0, 10, 10]], [0, 0]))
    found.append(Found(np.array([[3.0, 0, 10, 10], [6, 0, 10, 10]]), np.zeros(2, np.int64), np.array([0.99, 0.98])))
    return truths, found


@pytest.mark.parametrize("seed", range(4))
def test_average_precision_against_a_plain_transcription(seed: int) -> None:
    truths, found = drawn(seed)
    got, wanted = average_precision(truths, found, 10), by_hand(truths, found, 10)
    assert set(got) == {"ap", "ap50", "ap_small"} and 0.01 < got["ap"] < 0.9
    assert got == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_average_precision_against_pycocotools(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    api = pytest.importorskip("pycocotools.coco")
    truths, found = drawn(seed, images=20)
    coco = api.COCO()
    annotations = [
        {"image_id": image, "category_id": int(t.labels[i]), "bbox": t.boxes[i].tolist(), "area": float(t.areas[i]),
         "iscrowd": int(t.crowd[i])}
        for image, t in enumerate(truths) for i in range(len(t.labels))
    ]  # fmt: skip
    coco.dataset = {
        "images": [{"id": image} for image in range(len(truths))],
        "categories": [{"id": i} for i in range(3)],
        "annotations": [{"id": i + 1, **row} for i, row in enumerate(annotations)],
        "info": {},
    }
    coco.createIndex()
    rows = [
        {"image_id": image, "category_id": int(f.labels[i]), "bbox": f.boxes[i].tolist(), "score": float(f.scores[i])}
        for image, f in enumerate(found) for i in range(len(f.labels))
    ]  # fmt: skip
    evaluation = pytest.importorskip("pycocotools.cocoeval").COCOeval(coco, coco.loadRes(rows), "bbox")
    evaluation.params.maxDets = [1, 10, 400]
    evaluation.evaluate()
    evaluation.accumulate()
    table = evaluation.eval["precision"]  # overlaps, recalls, classes, areas (all, small, ...), detections

    def mean(values: np.ndarray) -> float:
        return float(values[values > -1].mean())

    for number, most in ((1, 10), (2, 400)):
        wanted = {
            "ap": mean(table[:, :, :, 0, number]),
            "ap50": mean(table[0, :, :, 0, number]),
            "ap_small": mean(table[:, :, :, 1, number]),
        }
        assert average_precision(truths, found, most) == pytest.approx(wanted, abs=1e-9)
    capsys.readouterr()


def test_average_precision_by_hand() -> None:
    boxes = [[0, 0, 10, 10], [50, 50, 100, 100]]
    truth = labelled(boxes, [0, 0])
    perfect = Found(np.array(boxes, float), np.zeros(2, np.int64), np.array([0.9, 0.8]))
    assert average_precision([truth], [perfect]) == {"ap": 1.0, "ap50": 1.0, "ap_small": 1.0}
    half = Found(perfect.boxes[:1], perfect.labels[:1], perfect.scores[:1])
    assert average_precision([truth], [half])["ap50"] == pytest.approx(51 / 101)
    nothing = Found(np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0))
    assert average_precision([truth], [nothing]) == {"ap": 0.0, "ap50": 0.0, "ap_small": 0.0}
    large = labelled(boxes[1:], [0])
    assert average_precision([large], [perfect]).keys() == {"ap", "ap50"}
    many = np.concatenate([np.arange(300)[:, None] * [[20, 0]], np.full((300, 2), 10.0)], axis=1)
    all_found = Found(many, np.zeros(300, np.int64), np.linspace(1, 0.1, 300))
    assert average_precision([labelled(many, np.zeros(300))], [all_found], 400)["ap"] == 1.0
    assert average_precision([labelled(many, np.zeros(300))], [all_found], 100)["ap"] < 0.35


def test_giou_by_the_formula() -> None:
    random = np.random.default_rng(0)
    a, b = (np.concatenate([random.uniform(0.2, 0.8, (40, 2)), random.uniform(0.01, 0.5, (40, 2))], 1) for _ in "ab")
    got = giou(corners(torch.tensor(a)), corners(torch.tensor(b))).numpy()
    for (ax, ay, aw, ah), (bx, by, bw, bh), value in zip(a, b, got, strict=True):
        wide = max(0.0, min(ax + aw / 2, bx + bw / 2) - max(ax - aw / 2, bx - bw / 2))
        tall = max(0.0, min(ay + ah / 2, by + bh / 2) - max(ay - ah / 2, by - bh / 2))
        union = aw * ah + bw * bh - wide * tall
        hull_wide = max(ax + aw / 2, bx + bw / 2) - min(ax - aw / 2, bx - bw / 2)
        hull_tall = max(ay + ah / 2, by + bh / 2) - min(ay - ah / 2, by - bh / 2)
        wanted = wide * tall / union - (hull_wide * hull_tall - union) / (hull_wide * hull_tall)
        assert value == pytest.approx(wanted, abs=1e-12)


GOOD = {
    "images": [{"id": 7, "file_name": "a.png", "width": 20, "height": 10}],
    "annotations": [{"id": 1, "image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0}],
    "categories": [{"id": 3, "name": "cell"}, {"id": 1, "name": "dust"}],
}


def written(folder: Path, change: dict[str, Any] | None = None, **annotation: Any) -> Path:
    rows = [{**GOOD["annotations"][0], **annotation}]
    (folder / "set.json").write_text(json.dumps({**GOOD, "annotations": rows, **(change or {})}))
    return folder / "set.json"


def test_coco_json(tmp_path: Path) -> None:
    coco = read_coco(written(tmp_path), tmp_path / "images")
    assert coco.paths == [tmp_path / "images/a.png"] and coco.sizes == [(20, 10)]
    assert coco.categories == ["dust", "cell"] and coco.objects[0].labels.tolist() == [1]
    assert coco.objects[0].boxes.tolist() == [[1, 2, 3, 4]] and coco.fault(0) == ""
    assert read_coco(written(tmp_path, area=None), tmp_path).objects[0].areas.tolist() == [12.0]


@pytest.mark.parametrize(
    ("change", "annotation", "said"),
    [
        ({"images": 3}, {}, "has no list 'images'"),
        ({"categories": None}, {}, "has no list 'categories'"),
        ({"images": []}, {"image_id": 7}, "has 0 images"),
        ({"images": GOOD["images"] * 2}, {}, "the same id to two images"),
        ({"images": [{"id": 7, "file_name": "a.png", "width": 20}]}, {}, "height is None"),
        ({}, {"image_id": 8}, "annotation 1 is of image 8, which is not among the images"),
        ({}, {"category_id": 2}, "annotation 1 is of category 2"),
        ({}, {"bbox": [1, 2, 3]}, r"annotation 1 has the bbox \[1, 2, 3\], not four numbers"),
        ({}, {"bbox": [1, 2, 3, float("nan")]}, "not four numbers"),
        ({}, {"area": "12"}, "annotation 1 has the area '12', which is no number"),
        ({"images": [{**GOOD["images"][0], "width": 0}]}, {}, "image 7 is said to be of 0 x 10 pixels"),
    ],
)
def test_a_wrong_json_is_named(tmp_path: Path, change: dict[str, Any], annotation: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=r"set\.json: ") as err:
        read_coco(written(tmp_path, change, **annotation), tmp_path)
    assert re.search(said, str(err.value)), err.value


def test_a_file_that_is_missing_or_cut(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.json: cannot be read: No such file"):
        read_coco(tmp_path / "none.json", tmp_path)
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"set\.json: is no valid json"):
        read_coco(path, tmp_path)
    path.write_text("[1]")
    with pytest.raises(DataError, match="holds a list"):
        read_coco(path, tmp_path)


@pytest.mark.parametrize(
    ("box", "said"),
    [([18, 2, 5, 4], "lies outside of the image of 20 x 10"), ([-3, 2, 5, 4], "outside"), ([1, 2, 0, 4], "no area")],
)
def test_boxes_that_cannot_be(tmp_path: Path, box: list[float], said: str) -> None:
    (tmp_path / "a.png").touch()
    coco = read_coco(written(tmp_path, bbox=box), tmp_path)
    with pytest.raises(DataError, match=said):
        coco.check()
    (tmp_path / "a.png").unlink()
    with pytest.raises(DataError, match=r"names .*a\.png, which does not exist"):
        read_coco(written(tmp_path), tmp_path).check()
