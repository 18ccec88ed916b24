"""Annotations in COCO's json: read once, checked, and named by their file where something is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.fields import not_there

__all__ = ["CocoSet", "Labelled", "read_coco"]

OVERSHOOT_PX = 1.0
"""Boxes may stick out by this much: annotation tools round."""


@dataclass(frozen=True)
class Labelled:
    """The objects of one image: ``boxes`` (n, 4) as left, top, width, height in pixels, a class number each."""

    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    areas: NDArray[np.float64]
    crowd: NDArray[np.bool_]


@dataclass(frozen=True)
class CocoSet:
    """Image number i lies in ``paths[i]``, is ``sizes[i]`` = (width, height) and shows ``objects[i]``."""

    file: Path
    paths: list[Path]
    sizes: list[tuple[int, int]]
    objects: list[Labelled]
    categories: list[str]

    def without(self, bad: set[Path]) -> CocoSet:
        """Without images that cannot be used. Classes keep their numbers."""
        kept = [row for row, path in enumerate(self.paths) if path not in bad]
        if not kept:
            raise DataError(self.file, "names no image that can be used.")
        return replace(
            self,
            paths=[self.paths[row] for row in kept],
            sizes=[self.sizes[row] for row in kept],
            objects=[self.objects[row] for row in kept],
        )

    def fault(self, row: int) -> str:
        """What is wrong with the boxes of an image; empty where nothing is."""
        (width, height), boxes = self.sizes[row], self.objects[row].boxes
        for box in boxes:
            left, top, wide, tall = box
            if wide <= 0 or tall <= 0:
                return f"the box {box.tolist()} has no area."
            outside = max(-left, -top, left + wide - width, top + tall - height)
            if outside > OVERSHOOT_PX:
                return f"the box {box.tolist()} lies outside of the image of {width} x {height}."
        return ""

    def check(self) -> None:
        """Raise DataError for the first image that is not there or has a box that cannot be."""
        for row, path in enumerate(self.paths):
            if not path.is_file():
                raise not_there(self.file, path)
            if fault := self.fault(row):
                raise DataError(self.file, f"{path.name}: {fault}", "--quarantine leaves such images out.")


def read_coco(file: Path, folder: Path) -> CocoSet:
    """Images with their objects; file names are relative to ``folder``. Images without objects stay."""
    loaded = _loaded(file)
    categories = sorted((_number(file, row, "id"), str(row.get("name", ""))) for row in loaded["categories"])
    label = {number: i for i, (number, _) in enumerate(categories)}
    images = {_number(file, row, "id"): row for row in loaded["images"]}
    if len(images) < len(loaded["images"]) or len(label) < len(categories):
        raise DataError(file, "gives the same id to two images or two categories.")
    if not images or not label:
        raise DataError(file, f"has {len(images)} images and {len(label)} categories.")
    rows: dict[int, list[tuple[list[float], int, float, bool]]] = {number: [] for number in images}
    for row in loaded["annotations"]:
        own, image, category = (_number(file, row, key) for key in ("id", "image_id", "category_id"))
        if image not in rows:
            raise DataError(file, f"annotation {own} is of image {image}, which is not among the images.")
        if category not in label:
            raise DataError(file, f"annotation {own} is of category {category}, which is not among the categories.")
        box = _box(file, own, row.get("bbox"))
        area = row.get("area")
        if area is not None and not isinstance(area, int | float):
            raise DataError(file, f"annotation {own} has the area {area!r}, which is no number.")
        area = box[2] * box[3] if area is None else float(area)
        rows[image].append((box, label[category], area, bool(row.get("iscrowd", 0))))
    return CocoSet(
        file,
        [folder / str(row.get("file_name", "")) for row in images.values()],
        [_size(file, number, row) for number, row in images.items()],
        [_labelled(rows[number]) for number in images],
        [name for _, name in categories],
    )


def _size(file: Path, image: int, row: Mapping[str, Any]) -> tuple[int, int]:
    width, height = _number(file, row, "width"), _number(file, row, "height")
    if width < 1 or height < 1:
        raise DataError(file, f"image {image} is said to be of {width} x {height} pixels.")
    return width, height


def _loaded(file: Path) -> dict[str, list[Mapping[str, Any]]]:
    try:
        loaded = json.loads(file.read_text(encoding="utf-8"))
    except OSError as err:
        raise DataError(file, f"cannot be read: {err.strerror}.", "--data names the folder that holds it.") from err
    except ValueError as err:  # json's and unicode's errors are both ValueErrors
        raise DataError(file, f"is no valid json: {err}.", "Was it copied whole?") from err
    if not isinstance(loaded, dict):
        raise DataError(file, f"holds a {type(loaded).__name__}, not COCO's images, annotations and categories.")
    for key in ("images", "annotations", "categories"):
        rows = loaded.get(key)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise DataError(file, f"has no list {key!r}, as COCO's json has.")
    return loaded


def _number(file: Path, row: Mapping[str, Any], key: str) -> int:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataError(file, f"{key} is {value!r}, not a whole number, in {str(dict(row))[:120]}.")
    return value


def _box(file: Path, own: int, value: Any) -> list[float]:
    numbers = isinstance(value, list) and len(value) == 4 and all(isinstance(v, int | float) for v in value)
    if not numbers or not np.isfinite(value).all():
        raise DataError(file, f"annotation {own} has the bbox {value!r}, not four numbers x, y, width, height.")
    return [float(v) for v in value]


def _labelled(rows: list[tuple[list[float], int, float, bool]]) -> Labelled:
    return Labelled(
        np.array([box for box, *_ in rows], np.float64).reshape(-1, 4),
        np.array([label for _, label, *_ in rows], np.int64),
        np.array([area for *_, area, _ in rows], np.float64),
        np.array([crowd for *_, crowd in rows], np.bool_),
    )
