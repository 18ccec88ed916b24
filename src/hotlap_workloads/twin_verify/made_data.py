"""A small set made here, for a machine without data: drawn faces, and twins who differ by a mole and a brow.

A face is an oval with eyes, brows, nose, mouth and moles in places of its own; an image of it has its own shift, light
and noise. Deterministic; a few seconds to make.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image

__all__ = ["make_data"]

Floats = NDArray[np.float64]
SIZE, EACH = 96, 8
FAMILIES = {"train": 16, "val": 5, "test": 5}
"""Pairs of twins in each split."""


def make_data(folder: Path) -> Path:
    """Write the set below ``folder`` unless it is there: the two files of each split, and images/."""
    if (folder / "train_dataset_infor.json").exists():
        return folder
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    number = 0
    for split, families in FAMILIES.items():
        people, twins = {}, []
        for _ in range(families):
            random = np.random.default_rng([17, number])
            face = random.uniform(-1, 1, 16)
            names = []
            for which in "ab":
                name = f"made{number:03d}{which}"
                people[name] = _images(unfinished, name, face, random)
                face = face.copy()
                face[12:] = random.uniform(-1, 1, 4)
                names.append(name)
            twins.append(names)
            number += 1
        (unfinished / f"{split}_dataset_infor.json").write_text(json.dumps(people))
        (unfinished / f"{split}_twin_pairs_infor.json").write_text(json.dumps(twins))
    os.replace(unfinished, folder)
    return folder


def _images(root: Path, name: str, face: Floats, random: Generator) -> list[str]:
    (root / "images" / name).mkdir(parents=True)
    paths = []
    for number in range(EACH):
        path = f"images/{name}/{number:02d}.jpg"
        Image.fromarray(drawn(face, random)).save(root / path, quality=90)
        paths.append(path)
    return paths


def drawn(face: Floats, random: Generator) -> NDArray[np.uint8]:
    """(SIZE, SIZE, 3): one photo of a face of 16 numbers from -1 to 1; the last four are what twins do not share."""
    along = np.linspace(-1, 1, SIZE, dtype=np.float32)
    x = (along - np.float32(random.uniform(-0.08, 0.08)))[None, :]
    y = (along - np.float32(random.uniform(-0.08, 0.08)))[:, None]
    picture = np.empty((3, SIZE, SIZE), np.float32)
    picture[:] = (0.35 + 0.1 * random.uniform(-1, 1, 3))[:, None, None]

    def blot(cx: float, cy: float, rx: float, ry: float, colour: Floats) -> None:
        inside = np.clip((1 - np.sqrt(((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2)) * 6, 0, 1)
        picture[:] += (colour.astype(np.float32)[:, None, None] - picture) * inside

    skin = np.array([0.75, 0.58, 0.48]) + 0.12 * face[0]
    dark = np.array([0.2, 0.14, 0.1]) + 0.08 * face[1]
    eye_x, eye_y = 0.3 + 0.07 * face[2], -0.15 + 0.06 * face[3]
    blot(0, -0.25, 0.78 + 0.08 * face[4], 0.75, dark)
    blot(0, 0.05, 0.62 + 0.08 * face[4], 0.82 + 0.08 * face[5], skin)
    for side in (-1, 1):
        blot(side * eye_x, eye_y, 0.13 + 0.03 * face[6], 0.075 + 0.02 * face[7], np.full(3, 0.92))
        blot(side * eye_x, eye_y, 0.05, 0.06, np.array([0.25, 0.3, 0.35]) + 0.12 * face[8])
        blot(side * eye_x, eye_y - 0.18 + 0.05 * face[12], 0.17, 0.035 + 0.012 * face[13], dark)
    blot(0, 0.15, 0.07 + 0.03 * face[9], 0.2, skin * 0.82)
    smile = random.uniform(0.8, 1.2)
    blot(0, 0.5 + 0.05 * face[10], (0.24 + 0.06 * face[11]) * smile, 0.07 / smile, np.array([0.62, 0.25, 0.25]))
    blot(0.42 * face[14], 0.3 + 0.12 * face[15], 0.06, 0.06, dark)
    light = 1 + random.uniform(-0.25, 0.25) + random.uniform(-0.2, 0.2) * x
    tint = 0.05 * random.uniform(-1, 1, (3, 1, 1))
    picture = picture * light + 0.03 * random.standard_normal(picture.shape, np.float32) + tint
    pixels: NDArray[np.uint8] = (np.clip(picture, 0, 1) * 255).astype(np.uint8).transpose(1, 2, 0)
    return pixels
