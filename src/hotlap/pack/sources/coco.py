"""COCO annotations: an image a row, its boxes and categories of varying number beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.pack.sources.files import FileSource
from hotlap.pack.sources.options import SourceOptions
from hotlap.pack.sources.read import is_url, named
from hotlap.records.errors import HotlapError

__all__ = ["coco_json"]


def coco_json(path: str, found: dict[str, Any], options: SourceOptions) -> FileSource:
    """Boxes as COCO has them (x, y, width, height, in pixels of the original), crowds included and marked."""
    if options.size is not None:
        raise HotlapError("--size would move the boxes: COCO images are packed in their own size.", exit_code=2)
    images = _with(path, "images", found["images"], "id", "file_name", "height", "width")
    for image in images:
        if not isinstance(image["file_name"], str):
            raise HotlapError(f"{path}: {_brief(image)} has a file_name that is no text.")
    categories = _with(path, "categories", found.get("categories", []), "id", "name")
    names = {number: category["name"] for number, category in _by_id(path, "categories", categories).items()}
    numbers = {number: k for k, number in enumerate(sorted(names))}
    of_image: dict[int, list[dict[str, Any]]] = {number: [] for number in _by_id(path, "images", images)}
    orphans: list[dict[str, Any]] = []
    for annotation in _with(path, "annotations", found["annotations"], "image_id", "bbox", "category_id"):
        _check(path, annotation, numbers)
        of_image.get(_whole(path, annotation, "image_id"), orphans).append(annotation)
    if orphans:
        raise HotlapError(
            f"{path}: {len(orphans)} of its annotations are of images that it does not list; the first image_id is "
            f"{orphans[0]['image_id']!r}.", "Do images and annotations come from the same version? Remove those.",
        )  # fmt: skip
    rows = list(of_image.values())
    columns: dict[str, Any] = {
        "boxes": [np.array([a["bbox"] for a in row], np.float32).reshape(-1, 4) for row in rows],
        "category": [np.array([numbers[int(a["category_id"])] for a in row], np.int64) for row in rows],
        "crowd": [np.array([a.get("iscrowd", 0) for a in row], np.uint8) for row in rows],
        "image_id": list(of_image),
        "size": [np.array([_whole(path, i, "height"), _whole(path, i, "width")], np.int32) for i in images],
    }
    root = options.root or _root(path, images)
    files = named(root, (os.path.normpath(image["file_name"]) for image in images))
    source = FileSource(root, files, columns, options)
    source.ragged = frozenset({"boxes", "category", "crowd"})
    source.metadata["classes"] = [names[number] for number in sorted(names)]
    return source


def _root(path: str, images: list[dict[str, Any]]) -> str:
    """The folder near the annotations that the first image lies in."""
    if is_url(path):
        raise HotlapError(f"{path} does not tell where its images lie.", "Say where: --root URL")
    here = Path(path).resolve().parent
    first = images[0]["file_name"] if images else ""
    places = [here, here / "images", here.parent / "images", here.parent / Path(path).stem.split("_")[-1]]
    root = next((str(p) for p in places if (p / first).exists()), None)
    if root is None:
        raise HotlapError(f"{first} is in none of {', '.join(map(str, places))}.", "Say where: --root DIR")
    return root


def _whole(path: str, entry: dict[str, Any], key: str) -> int:
    """A number without a fraction, which may be written as text ("17")."""
    value = entry[key]
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        found = None
    most = 1 << (31 if key in ("height", "width") else 63)  # what their columns hold
    if found is None or (isinstance(value, float) and value != found) or not -most <= found < most:
        raise HotlapError(f"{path}: {_brief(entry)} has {value!r:.80} for its {key}, which is no whole number.")
    return found


def _by_id(path: str, what: str, entries: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for entry in entries:
        number = _whole(path, entry, "id")
        if number in found:
            raise HotlapError(f"{path}: two of its {what} have the id {number}.", "Which is meant? Remove the other.")
        found[number] = entry
    return found


def _check(path: str, annotation: dict[str, Any], numbers: dict[int, int]) -> None:
    box = annotation["bbox"]
    is_box = isinstance(box, list) and len(box) == 4 and all(isinstance(v, int | float) and abs(v) < 1e9 for v in box)
    if _whole(path, annotation, "category_id") not in numbers or not is_box:
        wrong = "is of no category that is listed, or has no box of four numbers"
        raise HotlapError(f"{path}: {_brief(annotation)} {wrong}.")
    if annotation.get("iscrowd", 0) not in (0, 1):
        raise HotlapError(f"{path}: {_brief(annotation)} has an iscrowd that is neither 0 nor 1.")


def _with(path: str, what: str, entries: Any, *keys: str) -> list[dict[str, Any]]:
    """The entries, each of which has all of ``keys``."""
    if not isinstance(entries, list):
        raise HotlapError(f"{path}: its {what} are no list.")
    for entry in entries:
        missing = [key for key in keys if not isinstance(entry, dict) or key not in entry]
        if missing:
            raise HotlapError(f"{path}: {_brief(entry)}, one of its {what}, has no {' and no '.join(missing)}.")
    return entries


def _brief(entry: Any) -> str:
    text = repr(entry)
    return text if len(text) <= 80 else f"{text[:77]}…"
