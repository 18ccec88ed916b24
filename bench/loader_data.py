"""Data sets for ``bench/loader.py``, made here and nowhere downloaded: photo-like JPEGs, recordings, boxes.

Every kind has its files below ``folder/files``, ``samples`` to read them decoded (what a packer of any library does)
and one or more packs of ours.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["BATCH", "CLIP", "COUNT", "CROP", "MOST_BOXES", "SIDE", "decode", "make_files", "pack_of", "paths", "read",
           "samples"]  # fmt: skip

COUNT = {"images": 10_000, "audio": 2_000, "boxes": 10_000}
BATCH = {"images": 128, "audio": 64, "boxes": 64}
CROP = (112, 112)
CLIP = 32_000
"""Two seconds at 16 kHz."""
SIDE = {"images": 160, "boxes": 96}
MOST_BOXES = 40
_RECORDING = 64_000


def _photo(rng: np.random.Generator, side: int) -> bytes:
    """Smooth areas, edges and grain, so that the JPEG is as large as a photograph's (about 6 KB at 160x160)."""
    from PIL import Image as Picture

    coarse = Picture.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8)).resize((side, side), Picture.BICUBIC)
    pixels = np.asarray(coarse).astype(np.int16)
    edge = side // 4
    y, x = rng.integers(0, side - edge, 2)
    pixels[y : y + edge, x : x + edge] = rng.integers(0, 256, 3)
    pixels += rng.normal(0, 6, pixels.shape).astype(np.int16)
    out = io.BytesIO()
    Picture.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=85)
    return out.getvalue()


def _boxes(rng: np.random.Generator, side: int) -> list[list[float]]:
    corner, size = rng.random((int(rng.integers(0, MOST_BOXES + 1)), 2)), None
    size = (1 - corner) * rng.random(corner.shape)
    found: list[list[float]] = np.round(np.concatenate([corner, size], 1) * side, 2).tolist()
    return found


def make_files(folder: Path, kind: str, count: int) -> None:
    """``folder/files``, once: a folder per class, or COCO annotations beside their images."""
    files = folder / "files"
    if (folder / "made").exists():
        return
    rng, annotations = np.random.default_rng(0), []
    for k in range(count):
        path = files / f"{k % 100:03d}" / f"{k:06d}.{'wav' if kind == 'audio' else 'jpg'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "audio":
            import soundfile

            soundfile.write(path, rng.integers(-9000, 9000, _RECORDING).astype(np.int16), 16_000)
            continue
        path.write_bytes(_photo(rng, SIDE[kind]))
        if kind == "boxes":
            annotations += [{"image_id": k, "bbox": box, "category_id": int(rng.integers(80)), "iscrowd": 0}
                            for box in _boxes(rng, SIDE[kind])]  # fmt: skip
    if kind == "boxes":
        side = SIDE[kind]
        pictures = [{"id": k, "file_name": f"{k % 100:03d}/{k:06d}.jpg", "height": side, "width": side}
                    for k in range(count)]  # fmt: skip
        document = {"images": pictures, "annotations": annotations,
                    "categories": [{"id": k, "name": str(k)} for k in range(80)]}  # fmt: skip
        (files / "instances.json").write_text(json.dumps(document))
    (folder / "made").write_text(str(count))


def pack_of(folder: Path, kind: str, variant: str, target: Path) -> None:
    """Pack the files as a user does, by the command: ``planar`` or ``interleaved`` (decoded), or ``encoded``.

    Its start is in its time; its processes do not import what this benchmark has imported.
    """
    files = folder / "files"
    source = files / "instances.json" if kind == "boxes" else files
    how = ["--store", "encoded"] if variant == "encoded" else ["--store", "raw", "--rows", variant]
    words = [sys.executable, "-m", "hotlap", "pack", str(source), str(target), *how]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def paths(folder: Path) -> list[Path]:
    """All files, sorted by name (which is the row number)."""
    found = (p for p in (folder / "files").rglob("*.*") if p.suffix in (".jpg", ".wav"))
    return sorted(found, key=lambda p: p.name)


def decode(content: bytes) -> np.ndarray[Any, Any]:
    """A JPEG as [height, width, 3], by the quickest decoder there is for one core."""
    import simplejpeg

    found: np.ndarray[Any, Any] = simplejpeg.decode_jpeg(content, "RGB")
    return found


def read(path: Path) -> np.ndarray[Any, Any]:
    """A file decoded: [3, height, width] of uint8, or int16 samples."""
    if path.suffix == ".wav":
        import soundfile

        samples: np.ndarray[Any, Any] = soundfile.read(path, dtype="int16")[0]
        return samples
    return np.ascontiguousarray(decode(path.read_bytes()).transpose(2, 0, 1))


def samples(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    """Every sample by name of column: the path, the label, and the boxes where there are any."""
    if kind != "boxes":
        for path in paths(folder):
            yield {"path": path, "label": int(path.parent.name)}
        return
    document = json.loads((folder / "files" / "instances.json").read_text())
    boxes: list[list[list[float]]] = [[] for _ in document["images"]]
    classes: list[list[int]] = [[] for _ in document["images"]]
    for entry in document["annotations"]:
        boxes[entry["image_id"]].append(entry["bbox"])
        classes[entry["image_id"]].append(entry["category_id"])
    for k, path in enumerate(paths(folder)):
        yield {"path": path, "label": int(path.parent.name), "category": np.array(classes[k], np.int64),
               "boxes": np.array(boxes[k], np.float32).reshape(-1, 4)}  # fmt: skip
