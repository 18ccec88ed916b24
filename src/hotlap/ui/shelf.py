"""The runs that lie in the folder. A run is found by being listed: no path is ever made of what a request says.

Links are not followed: one in a run's folder could lead to any file that the reader of the page may read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hotlap.records.errors import RecordError
from hotlap.records.run_folder import RunFolder

__all__ = ["Shelf", "check_folder", "read_file", "signature"]

RUN = "run.json"
MOST_BYTES = 64 * 2**20
"""A larger document is none of ours: the largest are losses of long proofs, some megabytes."""
MOST_ENTRIES = 20_000
"""Files looked at in one run's folder; a run of a thousand trials has a few thousand."""


class Shelf:
    """The runs folder; it may not be there yet."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._resolved = root.resolve()

    def names(self) -> tuple[list[str], list[str]]:
        """Names of the runs, and of the links that lie among them and are not followed."""
        runs, links = [], []
        try:
            with os.scandir(self._resolved) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        links.append(entry.name)
                    elif entry.is_dir(follow_symlinks=False) and os.path.lexists(os.path.join(entry.path, RUN)):
                        runs.append(entry.name)
        except FileNotFoundError:
            return [], []
        except OSError as err:
            raise RecordError(f"Cannot read the folder {self.root}: {err.strerror}.") from err
        return sorted(runs), sorted(links)

    def find(self, name: str) -> RunFolder | None:
        """The run of this name, if it is listed."""
        return RunFolder(self._resolved / name) if name in self.names()[0] else None

    def folder(self, name: str) -> RunFolder:
        """The folder of a run that was just listed."""
        return RunFolder(self._resolved / name)


def check_folder(folder: Path, deep: bool = True) -> None:
    """Raises RecordError for a link, for something that is no file, and for a document too large to be one.

    ``deep``: in the folders below too, else among the run's own documents alone.
    """
    try:
        for number, entry in enumerate(_entries(folder, deep)):
            if number >= MOST_ENTRIES:
                raise RecordError(f"{folder.name} holds more than {MOST_ENTRIES} files: it is not read.")
            if entry.is_symlink():
                raise RecordError(f"{folder.name}: {entry.name} is a link, and links are not followed.")
            found = entry.stat(follow_symlinks=False)
            if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
                raise RecordError(f"{folder.name}: {entry.name} is neither a file nor a folder.")
            if entry.name.endswith((".json", ".html", ".yaml")) and found.st_size > MOST_BYTES:
                raise RecordError(f"{folder.name}: {entry.name} has {found.st_size} bytes, too many to be read.")
    except FileNotFoundError:
        return  # removed meanwhile: reading says so
    except OSError as err:
        raise RecordError(f"Cannot look into {folder.name}: {err.strerror}.") from err


def _entries(folder: Path, deep: bool) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if deep and entry.is_dir(follow_symlinks=False):
                yield from _entries(Path(entry.path), deep)


def read_file(path: Path, most: int = MOST_BYTES) -> bytes | None:
    """A whole file, links not followed; None when it is not there. RecordError when it is none, or too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as err:
        raise RecordError(f"Cannot read {path.name}: {err.strerror}.") from err
    with open(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            raise RecordError(f"{path.name} is no file that could be read, or too large ({found.st_size} bytes).")
        return file.read(most)


def signature(folder: Path, names: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Size and time of change of each file, (-1, -1) where there is none: what a cache is kept by."""
    found = []
    for name in names:
        try:
            status = os.lstat(folder / name)
            found.append((status.st_size, status.st_mtime_ns))
        except OSError:
            found.append((-1, -1))
    return tuple(found)
