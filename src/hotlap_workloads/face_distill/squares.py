"""Photos as the networks see them: squares of one size, decoded at each use or once into a pack."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.pack import HotlapError, PackSettings, pack
from hotlap.pack.job import PLAN
from hotlap.pack.manifest import MANIFEST, read_json, read_manifest
from hotlap_workloads.engine.quarantine import quarantined
from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import DataError
from hotlap_workloads.face_distill.photos import Kept, Photos
from hotlap_workloads.parts.face_image import align, square
from hotlap_workloads.parts.image_file import Pixels

__all__ = ["Squares", "packed", "unreadable"]

ROWS_A_PROCESS = 20_000
"""Photos worth another packing process: starting one takes a second, decoding so many about five."""


@dataclass(frozen=True)
class Squares:
    """Row by row a square (size, size, 3) of uint8 and the person. ``points`` are the landmarks where photos are loose.

    ``middle`` is what ``square`` takes of larger photos.
    """

    photos: Photos
    size: int
    middle: int = 0
    points: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.photos)

    def __call__(self, row: int) -> tuple[Pixels, int]:
        content, label = self.photos.read(row)
        name = self.photos.name(row)
        if self.points is not None:
            return align(content, name, self.size, self.points[row]), label
        return square(content, name, self.size, self.middle), label

    def fingerprint(self) -> str:
        points = 0 if self.points is None else zlib.crc32(self.points.tobytes())
        return f"{self.photos.fingerprint()} size {self.size} middle {self.middle} points {points:08x}"

    def kept_rows(self, bad: set[Path]) -> list[int]:
        """Rows whose photo can be read."""
        return [row for row in range(len(self)) if self.photos.name(row) not in bad]

    def only(self, rows: list[int]) -> Squares:
        """These rows; the same object where that is all."""
        if len(rows) == len(self):
            return self
        points = None if self.points is None else self.points[rows]
        return replace(self, photos=Kept(self.photos, rows), points=points)


def unreadable(all_squares: Iterable[Squares], context: Context) -> set[Path]:
    """Names of photos that cannot be read, which ``quarantine.txt`` lists."""
    places = {squares.photos.name(row): (squares, row) for squares in all_squares for row in range(len(squares))}

    def read(name: Path) -> object:
        squares, row = places[name]
        return squares(row)

    return quarantined(places, read, context)


def packed(squares: Squares, folder: Path, context: Context) -> Path:
    """The folder with all squares decoded, made by the first rank unless it is there from the same photos.

    A packing of theirs that was interrupted goes on where it was.
    """
    fingerprint = squares.fingerprint() if context.ranks.first else ""
    if context.ranks.first and not _is_of(folder, fingerprint):
        context.say(f"Decoding {len(squares)} photos into {folder}, once.")
        if not _begun_of(folder, fingerprint):
            shutil.rmtree(folder, ignore_errors=True)
        _pack(_Rows(squares, fingerprint), folder)
    context.ranks.wait()
    return folder


class _Rows:
    """The squares as the packer wants its source."""

    ragged: frozenset[str] = frozenset()

    def __init__(self, squares: Squares, fingerprint: str) -> None:
        self.squares, self.metadata = squares, {"fingerprint": fingerprint}

    def __len__(self) -> int:
        return len(self.squares)

    def name(self, index: int) -> str:
        return str(self.squares.photos.name(index))

    def row(self, index: int) -> dict[str, Any]:
        pixels, label = self.squares(index)
        return {"image": pixels, "label": label}

    def fingerprint(self) -> str:
        return str(self.metadata["fingerprint"])


def _is_of(folder: Path, fingerprint: str) -> bool:
    """Whether the pack is there, whole and of these photos."""
    try:
        return (folder / MANIFEST).exists() and read_manifest(folder).metadata.get("fingerprint") == fingerprint
    except HotlapError:  # damaged: it is made again
        return False


def _begun_of(folder: Path, fingerprint: str) -> bool:
    """Whether the packer was interrupted there with these photos; those of others it would refuse to go on with."""
    try:
        return not (folder / MANIFEST).exists() and read_json(folder / PLAN)["same"][0] == fingerprint
    except HotlapError:  # nothing was begun, or its notes are damaged
        return False


def _pack(rows: _Rows, folder: Path) -> None:
    processes = max(1, min(8, os.cpu_count() or 1, len(rows) // ROWS_A_PROCESS))
    try:
        pack(rows, folder, PackSettings(processes=processes))
    except Exception as err:
        if isinstance(err.__cause__, DataError):  # which photo and why, without the packer's words around it
            raise err.__cause__ from err
        if hasattr(err, "what") and hasattr(err, "hint"):  # the packer's own error, or from a process of its
            raise DataError(folder, err.what, err.hint) from err
        raise
