"""Images decoded once into one flat file, then read through a memory map: no decoding in later epochs.

Images larger than a training uses are made smaller on the way. The file is made anew when the list of images, one of
them, or the size to keep has changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotlap_workloads.parts.image_file import Pixels
from hotlap_workloads.tiny_detr.files import FromFiles, resized
from hotlap_workloads.tiny_detr.shapes import fitted

__all__ = ["ImageBank", "build_bank"]


class ImageBank:
    """Image number i is ``bank(i)``, without a copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shapes: NDArray[np.int64] = np.load(folder / "shapes.npy")
        self._begins = np.concatenate([[0], np.cumsum(self._shapes.prod(axis=1) * 3)])
        self._pixels: Pixels = np.memmap(folder / "pixels.u8", np.uint8, "r")

    def __call__(self, number: int) -> Pixels:
        height, width = self._shapes[number]
        return self._pixels[self._begins[number] : self._begins[number + 1]].reshape(height, width, 3)

    def __reduce__(self) -> tuple[type[ImageBank], tuple[Path]]:
        """A loading process opens the file; the pixels are not sent to it."""
        return ImageBank, (self._folder,)


def build_bank(paths: Sequence[Path], sizes: Sequence[tuple[int, int]], most: tuple[int, int], folder: Path) -> None:
    """Decode ``paths`` into ``folder``, unless that has been done. ``most`` is (short side, long side) to keep."""
    wanted = json.dumps([most, [[str(path), *_stamp(path)] for path in paths]])
    manifest = folder / "files.json"
    if manifest.exists() and manifest.read_text(encoding="utf-8") == wanted:
        return
    folder.mkdir(parents=True, exist_ok=True)
    manifest.unlink(missing_ok=True)

    files = FromFiles(paths, sizes)

    def decoded(row: int) -> Pixels:
        pixels = files(row)
        size = fitted(sizes[row], *most)
        return resized(pixels, size) if size[0] < sizes[row][0] else pixels

    shapes = np.empty((len(paths), 2), np.int64)
    with open(folder / "pixels.u8", "wb") as out, ThreadPoolExecutor(4) as pool:
        for begin in range(0, len(paths), 64):  # so many at once in memory
            for row, pixels in enumerate(pool.map(decoded, range(begin, min(begin + 64, len(paths)))), begin):
                shapes[row] = pixels.shape[:2]
                np.ascontiguousarray(pixels).tofile(out)
    np.save(folder / "shapes.npy", shapes)
    new = folder / "files.json.new"
    new.write_text(wanted, encoding="utf-8")
    os.replace(new, manifest)  # last: an interrupted build is begun again


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
