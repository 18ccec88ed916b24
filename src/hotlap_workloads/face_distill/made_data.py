"""A small set made here, for a machine without data: drawn faces, in all the formats that this training reads.

A person is a shape of head, eyes, nose and mouth with colours of skin, hair and eyes; a photo turns, moves, lights and
blurs it, with another mouth and background. Deterministic; a few seconds to make.
"""

from __future__ import annotations

import io
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageDraw, ImageFilter

from hotlap_workloads.parts.recordio import packed_record

__all__ = ["make_data"]

SIDE = 112
TRAIN_PERSONS, TRAIN_EACH, TEST_PERSONS, TEST_EACH = 40, 16, 20, 6
RANGES: dict[str, tuple[float, float]] = {
    "face_w": (30, 42),
    "face_h": (40, 52),
    "eye_y": (44, 56),
    "eye_gap": (13, 21),
    "eye_r": (3, 7),
    "brow": (6, 13),
    "nose": (8, 20),
    "mouth_y": (78, 90),
    "mouth_w": (9, 20),
    "hair": (8, 30),
    "skin": (0, 1),
    "hair_shade": (0, 1),
    "eye_shade": (0, 1),
}
"""What differs between persons, in pixels of the photo or as a shade from 0 to 1."""


def make_data(folder: Path) -> Path:
    """Write the set below ``folder`` unless it is there: train.rec, made.bin, ijbc/, tinyface/."""
    if (folder / "train.rec").exists():
        return folder
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    _records(unfinished, [photos_of(person, TRAIN_EACH) for person in range(TRAIN_PERSONS)])
    test = [photos_of(TRAIN_PERSONS + person, TEST_EACH) for person in range(TEST_PERSONS)]
    _bin(unfinished / "made.bin", test)
    _templates(unfinished / "ijbc", test)
    _gallery(unfinished / "tinyface", test)
    os.replace(unfinished, folder)
    return folder


def photos_of(person: int, count: int) -> list[bytes]:
    """JPEG files of one person."""
    random = np.random.default_rng([3, person])
    looks = {name: random.uniform(low, high) for name, (low, high) in RANGES.items()}
    return [_jpeg(_photo(looks, random)) for _ in range(count)]


def _photo(looks: dict[str, float], random: Generator) -> Image.Image:
    image = Image.new("RGB", (SIDE, SIDE), tuple(random.integers(90, 150, 3).tolist()))
    draw, cx = ImageDraw.Draw(image), SIDE / 2
    skin = _mix((250, 214, 188), (92, 58, 40), looks["skin"])
    hair = _mix((225, 190, 110), (25, 18, 15), looks["hair_shade"])
    w, h = looks["face_w"], looks["face_h"]
    draw.ellipse((cx - w - 5, 60 - h - 6, cx + w + 5, 60 + h * 0.6), fill=hair)
    draw.ellipse((cx - w, 60 - h, cx + w, 60 + h), fill=skin)
    draw.chord((cx - w, 60 - h, cx + w, 60 - h + 2 * looks["hair"]), 180, 360, fill=hair)
    gap, eye_y, r = looks["eye_gap"], looks["eye_y"], looks["eye_r"]
    open_share = random.uniform(0.5, 1)
    for side in (-1, 1):
        x = cx + side * gap
        draw.ellipse((x - r * 1.5, eye_y - r * open_share, x + r * 1.5, eye_y + r * open_share), fill=(245, 245, 245))
        iris = _mix((90, 140, 190), (60, 35, 20), looks["eye_shade"])
        draw.ellipse((x - r * 0.7, eye_y - r * 0.7, x + r * 0.7, eye_y + r * 0.7), fill=iris)
        brow = looks["brow"]
        draw.line((x - brow, eye_y - r - 5, x + brow, eye_y - r - 4), fill=hair, width=3)
    shade = _mix(skin, (0, 0, 0), 0.25)
    draw.line(
        (cx, eye_y + 4, cx - 3, eye_y + 4 + looks["nose"], cx + 3, eye_y + 4 + looks["nose"]), fill=shade, width=2
    )
    smile, mw, my = random.uniform(-3, 6), looks["mouth_w"], looks["mouth_y"]
    draw.arc((cx - mw, my - 4 - smile, cx + mw, my + 4 + smile), 10, 170, fill=(160, 50, 60), width=3)
    return _as_taken(image, random)


def _as_taken(image: Image.Image, random: Generator) -> Image.Image:
    """Turned, moved, blurred, with light from one side and noise."""
    image = image.rotate(
        random.uniform(-12, 12),
        Image.Resampling.BILINEAR,
        translate=tuple(random.uniform(-5, 5, 2).tolist()),
        fillcolor=image.getpixel((0, 0)),
    )
    image = image.filter(ImageFilter.GaussianBlur(random.uniform(0, 1.2)))
    light = random.uniform(0.8, 1.2) * np.linspace(random.uniform(0.8, 1.2), random.uniform(0.8, 1.2), SIDE)
    pixels = np.asarray(image, np.float64) * light[None, :, None] + random.normal(0, 6, (SIDE, SIDE, 3))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def _mix(a: tuple[int, ...], b: tuple[int, ...], share: float) -> tuple[int, ...]:
    return tuple(round(x + (y - x) * share) for x, y in zip(a, b, strict=True))


def _jpeg(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=90)
    return out.getvalue()


def _records(folder: Path, persons: list[list[bytes]]) -> None:
    """As InsightFace lays them out: record 0, the photos, a record for each person."""
    photos = [(label, photo) for label, photos in enumerate(persons) for photo in photos]
    behind = len(photos) + 1
    records = [packed_record([behind, behind + len(persons)], 0, b"")]
    records += [packed_record([label], key, photo) for key, (label, photo) in enumerate(photos, 1)]
    first = 1
    for person, own in enumerate(persons):
        records.append(packed_record([first, first + len(own)], behind + person, b""))
        first += len(own)
    offsets = np.cumsum([0, *(len(record) for record in records[:-1])]).tolist()
    (folder / "train.rec").write_bytes(b"".join(records))
    (folder / "train.idx").write_text("".join(f"{key}\t{offset}\n" for key, offset in enumerate(offsets)))
    (folder / "property").write_text(f"{len(persons)},{SIDE},{SIDE}")


def _bin(path: Path, persons: list[list[bytes]]) -> None:
    """Ten runs of 12 trials of the same and 12 of different persons, as lfw.bin has them."""
    random, images, same = np.random.default_rng(5), [], []
    for _ in range(10):
        for is_same in [True] * 12 + [False] * 12:
            a, b = random.choice(len(persons), 2, replace=False)
            i, j = random.choice(TEST_EACH, 2, replace=False)
            images += [persons[a][i], persons[a if is_same else b][j]]
            same.append(is_same)
    path.write_bytes(pickle.dumps((images, same), protocol=4))


def _templates(folder: Path, persons: list[list[bytes]]) -> None:
    """Two templates of three photos for each person, the first two of one video; all pairs of them."""
    (folder / "loose_crop").mkdir(parents=True)
    (folder / "meta").mkdir()
    lines: list[str] = []
    for person, photos in enumerate(persons):
        for number, photo in enumerate(photos):
            name = f"{person * TEST_EACH + number + 1}.jpg"
            (folder / "loose_crop" / name).write_bytes(photo)
            template, medium = 2 * person + number // 3 + 1, 100 + number // 3 * 2 + (number % 3 == 2)
            lines.append(f"{name} {template} {medium}")
    pairs: list[Any] = [
        f"{a} {b} {int((a - 1) // 2 == (b - 1) // 2)}"
        for a in range(1, 2 * len(persons) + 1)
        for b in range(a + 1, 2 * len(persons) + 1)
    ]
    (folder / "meta/ijbc_face_tid_mid.txt").write_text("\n".join(lines) + "\n")
    (folder / "meta/ijbc_template_pair_label.txt").write_text("\n".join(pairs) + "\n")


def _gallery(folder: Path, persons: list[list[bytes]]) -> None:
    """Half of the persons are searched for, small; the others are strangers in the gallery."""
    half = len(persons) // 2
    for name in ("Probe", "Gallery_Match", "Gallery_Distractor"):
        (folder / name).mkdir(parents=True)
    for person, photos in enumerate(persons):
        for number, photo in enumerate(photos):
            small = Image.open(io.BytesIO(photo)).resize((24, 24), Image.Resampling.BILINEAR)
            kind = "Probe" if number < 3 else "Gallery_Match"
            kind = kind if person < half else "Gallery_Distractor"
            (folder / kind / f"{person + 1}_{number + 1}.jpg").write_bytes(_jpeg(small))
