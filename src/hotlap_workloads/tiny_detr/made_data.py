"""A small set made here, for a machine without data: discs, squares and triangles on noisy ground, most of them tiny.

Deterministic; a second to make. The form is COCO's.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageDraw

__all__ = ["make_data"]

KINDS = ("disc", "square", "triangle")
SIZES = ((192, 192), (256, 192), (192, 256), (256, 256), (320, 192))
PARTS = {"train": 96, "val": 24, "test": 24}


def make_data(folder: Path) -> Path:
    """Write the set below ``folder`` unless it is there: images/, instances_train.json, _val, _test."""
    if (folder / "instances_test.json").exists():
        return folder
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / "images").mkdir(parents=True)
    begin = 1
    for part, count in PARTS.items():
        loaded = _part(unfinished / "images", range(begin, begin + count))
        (unfinished / f"instances_{part}.json").write_text(json.dumps(loaded), encoding="utf-8")
        begin += count
    os.replace(unfinished, folder)
    return folder


def _part(folder: Path, numbers: range) -> dict[str, Any]:
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number in numbers:
        random = np.random.default_rng([17, number])
        width, height = SIZES[int(random.integers(len(SIZES)))]
        picture, objects = _picture(random, width, height)
        name = f"made{number:04d}.jpg"
        picture.save(folder / name, quality=92)
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        for kind, box in objects:
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": kind + 1,
                    "bbox": box,
                    "area": box[2] * box[3],
                    "iscrowd": 0,
                }
            )
    categories = [{"id": i + 1, "name": name} for i, name in enumerate(KINDS)]
    return {"images": images, "annotations": annotations, "categories": categories}


def _picture(random: Generator, width: int, height: int) -> tuple[Image.Image, list[tuple[int, list[int]]]]:
    """Objects do not touch: each is drawn where there is room."""
    coarse = random.integers(60, 130, (height // 32, width // 32, 3)).astype(np.uint8)
    ground = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(ground)
    free = np.ones((height, width), np.bool_)
    objects = []
    for _ in range(int(random.integers(4, 20))):
        side = int(random.choice([8, 10, 12, 16, 20, 28, 40]))
        left, top = int(random.integers(0, width - side)), int(random.integers(0, height - side))
        around = (slice(max(0, top - 2), top + side + 2), slice(max(0, left - 2), left + side + 2))
        if not free[around].all():
            continue
        free[around] = False
        kind = int(random.integers(len(KINDS)))
        colour = tuple(int(value) for value in random.integers(150, 256, 3))
        right, bottom = left + side - 1, top + side - 1
        if kind == 0:
            draw.ellipse((left, top, right, bottom), fill=colour)
        elif kind == 1:
            draw.rectangle((left, top, right, bottom), fill=colour)
        else:
            draw.polygon([(left, bottom), (right, bottom), ((left + right) // 2, top)], fill=colour)
        objects.append((kind, [left, top, side, side]))
    noisy = np.asarray(ground, np.float64) + random.normal(0, 8, (height, width, 3))
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)), objects
