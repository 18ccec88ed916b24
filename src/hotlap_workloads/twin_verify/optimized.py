"""The folder that ``optimize_data`` writes: people, splits, pairs of every epoch, and the images packed."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap_workloads.errors import DataError
from hotlap_workloads.twin_verify.album import Album
from hotlap_workloads.twin_verify.settings import TwinSettings
from hotlap_workloads.twin_verify.splits import SPLITS

__all__ = ["Optimized", "is_optimized", "read_optimized", "write_optimized"]

_FILE, _PAIRS, _IMAGES = "optimized.json", "pairs.npy", "images.pack"


@dataclass(frozen=True)
class Optimized:
    """What such a folder holds. ``groups`` is half the pairs of an epoch."""

    folder: Path
    album: Album
    splits: dict[str, list[int]]
    groups: int
    law: dict[str, Any]

    @property
    def images(self) -> Path:
        return self.folder / _IMAGES

    def pairs_for(self, s: TwinSettings, count: int) -> NDArray[np.int32] | None:
        """The pairs of every epoch, None where the settings ask for others or for more epochs."""
        if self.law != _law(s) or count != self.groups:
            return None
        path = self.folder / _PAIRS
        try:
            table: NDArray[np.int32] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as err:
            raise DataError(path, f"cannot be read: {err}.", "Run optimize_data again.") from err
        wrong = table.ndim != 3 or table.shape[1:] != (self.groups, 3) or table.dtype != np.int32
        if wrong or int(table.min()) < 0 or int(table.max()) >= len(self.album.paths):
            raise DataError(path, "does not go with optimized.json.", "Run optimize_data again.")
        return table if len(table) >= s.epochs else None


def _law(s: TwinSettings) -> dict[str, Any]:
    return {"seed": s.seed, "twin_share": s.twin_share}


def is_optimized(folder: Path) -> bool:
    return (folder / _FILE).exists()


def write_optimized(
    folder: Path, album: Album, splits: dict[str, list[int]], pairs: NDArray[np.int32], s: TwinSettings
) -> None:
    """Beside the pack, which must be there. ``optimized.json`` comes last: without it the folder counts for nothing."""
    with open(folder / _PAIRS, "wb") as out:
        np.save(out, pairs)
    found = {
        "version": 1,
        "names": album.names,
        "paths": [str(path.resolve()) for path in album.paths],
        "images_of": album.images_of,
        "twins_of": album.twins_of,
        "splits": splits,
        "groups": pairs.shape[1],
        "law": _law(s),
    }
    new = folder / f"{_FILE}.new"
    new.write_text(json.dumps(found), encoding="utf-8")
    os.replace(new, folder / _FILE)


def read_optimized(folder: Path) -> Optimized:
    """Raise DataError where the folder is not whole."""
    path = folder / _FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        paths = [Path(image) for image in found["paths"]]
        album = Album(found["names"], paths, found["images_of"], found["twins_of"])
        splits = {split: found["splits"][split] for split in SPLITS}
        return Optimized(folder, album, splits, int(found["groups"]), found["law"])
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise DataError(path, f"is not whole: {err}.", "Run optimize_data again.") from err
