"""COCO annotations: an image a row, its boxes and categories of varying number beside it."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.pack.sources.files import FileSource
from hotlap.pack.sources.options import SourceOptions
from hotlap.records.errors import HotlapError

__all__ = ["coco_json"]


def coco_json(path: str, found: dict[str, Any], options: SourceOptions) -> FileSource:
    """Boxes as COCO has them (x, y, width, height, in pixels of the original), crowds included and marked."""
    if options.size is not None:
        raise HotlapError("--size would move the boxes: COCO images are packed in their own size.", exit_code=2)
    images = _with(path, "images", found["images"], "id", "file_name", "height", "width")
    root = options.root
    if root is None:
        here = Path(path).resolve().parent
        first = images[0]["file_name"] if images else ""
        places = [here, here / "images", here.parent / "images", here.parent / Path(path).stem.split("_")[-1]]
        root = next((str(p) for p in places if (p / first).exists()), None)
        if root is None:
            raise HotlapError(f"{first} is in none of {', '.join(map(str, places))}.", "Say where: --root DIR")
    numbers: dict[Any, int] = {}
    for category in sorted(_with(path, "categories", found.get("categories", []), "id", "name"), key=lambda c: c["id"]):
        numbers[category["id"]] = len(numbers)
    of_image = defaultdict(list)
    for annotation in _with(path, "annotations", found["annotations"], "image_id", "bbox", "category_id"):
        box = annotation["bbox"]
        if annotation["category_id"] not in numbers or not isinstance(box, list) or len(box) != 4:
            wrong = "is of no category that is listed, or has no box of four numbers"
            raise HotlapError(f"{path}: {_brief(annotation)} {wrong}.")
        of_image[annotation["image_id"]].append(annotation)
    rows = [of_image[image["id"]] for image in images]
    columns: dict[str, Any] = {
        "boxes": [np.array([a["bbox"] for a in row], np.float32).reshape(-1, 4) for row in rows],
        "category": [np.array([numbers[a["category_id"]] for a in row], np.int64) for row in rows],
        "crowd": [np.array([a.get("iscrowd", 0) for a in row], np.uint8) for row in rows],
        "image_id": [int(image["id"]) for image in images],
        "size": [np.array([image["height"], image["width"]], np.int32) for image in images],
    }
    source = FileSource(root, [os.path.normpath(image["file_name"]) for image in images], columns, options)
    source.ragged = frozenset({"boxes", "category", "crowd"})
    names = {c["id"]: c["name"] for c in found.get("categories", [])}
    source.metadata["classes"] = [names[i] for i in sorted(names)]
    return source


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
