"""Where photos come from: a list of files or a folder per identity, read one at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.fields import fields
from hotlap_workloads.parts.image_file import read_bytes

__all__ = ["SUFFIXES", "FilePhotos", "Kept", "Photos", "photos_in_folder", "photos_in_list"]

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")


class Photos(Protocol):
    """Image files by row, with the number of the person. Must survive pickling: loading processes read too."""

    @property
    def identities(self) -> int: ...

    def __len__(self) -> int: ...

    def name(self, row: int) -> Path:
        """What errors call the photo."""
        ...

    def read(self, row: int) -> tuple[bytes, int]:
        """The image file's bytes, and the person. Raises DataError."""
        ...

    def fingerprint(self) -> str:
        """Changes when the photos do."""
        ...


@dataclass(frozen=True)
class FilePhotos:
    """Photos that are files of their own."""

    paths: Sequence[Path]
    labels: Sequence[int]
    identities: int

    def __len__(self) -> int:
        return len(self.paths)

    def name(self, row: int) -> Path:
        return self.paths[row]

    def read(self, row: int) -> tuple[bytes, int]:
        return read_bytes(self.paths[row]), self.labels[row]

    def fingerprint(self) -> str:
        crc = zlib.crc32(repr(list(self.labels)).encode())
        for path in self.paths:
            try:
                status = path.stat()
                mark = f"{status.st_size}\0{status.st_mtime_ns}"
            except OSError:
                mark = "gone"  # whoever reads it says so
            crc = zlib.crc32(f"{path}\0{mark}".encode(), crc)
        return f"files {len(self.paths)} {crc:08x}"


class Kept:
    """Some rows of other photos. Persons keep their numbers."""

    def __init__(self, photos: Photos, rows: Iterable[int]) -> None:
        self._photos, self._rows = photos, np.array(list(rows), np.int64)
        self.identities = photos.identities
        if len(self._rows) == 0:
            raise DataError(photos.name(0), "and all others cannot be read: no photo is left.")

    def __len__(self) -> int:
        return len(self._rows)

    def name(self, row: int) -> Path:
        return self._photos.name(int(self._rows[row]))

    def read(self, row: int) -> tuple[bytes, int]:
        return self._photos.read(int(self._rows[row]))

    def fingerprint(self) -> str:
        return f"{self._photos.fingerprint()} rows {zlib.crc32(self._rows.tobytes()):08x}"


def photos_in_list(file: Path, most: int = 0) -> FilePhotos:
    """Lines ``label path``, the path relative to the list's folder; at most ``most`` photos of a label."""
    rows = [(label, file.parent / path) for _, (label, path) in fields(file, "label path")]
    return _numbered(file, rows, most)


def photos_in_folder(folder: Path, most: int = 0) -> FilePhotos:
    """A folder per person, in the order of their names; at most ``most`` photos of each, in the order of theirs."""
    if not folder.is_dir():
        raise DataError(folder, "is no folder.")
    rows = []
    for person in sorted(path for path in folder.iterdir() if path.is_dir()):
        found = sorted(path for path in person.iterdir() if path.suffix.lower() in SUFFIXES)
        if not found:
            raise DataError(person, f"holds no photo ({', '.join(SUFFIXES)}).", "Remove the folder, or fill it.")
        rows += [(person.name, path) for path in found]
    return _numbered(folder, rows, most)


def _numbered(where: Path, rows: list[tuple[str, Path]], most: int) -> FilePhotos:
    names = {name for name, _ in rows}
    if len(names) < 2:
        raise DataError(where, f"holds photos of {len(names)} persons: there is nothing to tell apart.")
    numbers = all(name.isdecimal() for name in names)
    number = {name: i for i, name in enumerate(sorted(names, key=int if numbers else None))}
    have = dict.fromkeys(names, 0)
    kept = []
    for name, path in rows:
        have[name] += 1
        if not most or have[name] <= most:
            kept.append((number[name], path))
    return FilePhotos([path for _, path in kept], [label for label, _ in kept], len(names))
