"""Files decoded once into one flat file, then read through a memory map: no decoding in later epochs.

The file holds the values of all arrays back to back. It is made anew when the list of files, any of them, or what was
made of them has changed, and when it is not as long as it should be. Data beyond memory are no problem: the page cache
keeps what it can.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.writing import writing

__all__ = ["FlatBank", "flat_bank"]

T = TypeVar("T", bound=np.generic)
MANIFEST, VALUES, SHAPES = "files.json", "values.bin", "shapes.npy"
THREADS = 4
AT_ONCE = 64
"""Decoded arrays that wait in memory to be written, at most."""
ROOM = "Make room, or set decode=each_time."


class FlatBank(Generic[T]):
    """Array number i is ``bank(i)``, without a copy."""

    def __init__(self, folder: Path, kind: type[T], inode: int | None = None) -> None:
        """``inode`` is that of the file where it is opened again: DataError where there is another one by now."""
        self._folder, self._kind, self._inode = folder, kind, (folder / VALUES).stat().st_ino
        if inode not in (None, self._inode):
            raise DataError(folder, "was made anew by another process, of other files.", "Begin again.")
        self._shapes: NDArray[np.int64] = np.load(folder / SHAPES)
        self._begins = np.concatenate([[0], np.cumsum(self._shapes.prod(axis=1))])
        self._values: NDArray[T] = np.asarray(np.memmap(folder / VALUES, kind, "r"))

    def __call__(self, number: int) -> NDArray[T]:
        return self._values[self._begins[number] : self._begins[number + 1]].reshape(self._shapes[number])

    def stretches(self, numbers: Sequence[int], where: Sequence[float], length: int) -> NDArray[T]:
        """``length`` values of each of these arrays, laid flat, copied in one pass: (n, length).

        ``where`` in [0, 1) goes from the first possible beginning to the last. ValueError where an array is shorter.
        """
        begins = self._begins[list(numbers)]
        free = self._begins[np.add(numbers, 1)] - begins - length
        if (free < 0).any():
            raise ValueError(f"array {numbers[int(free.argmin())]} has {length + free.min()} values, not {length}")
        begins += (np.asarray(where) * (free + 1)).astype(np.int64)
        found: NDArray[T] = np.lib.stride_tricks.sliding_window_view(self._values, length)[begins]
        return found

    def __reduce__(self) -> tuple[type[FlatBank[T]], tuple[Path, type[T], int]]:
        """A loading process opens the file; the values are not sent to it."""
        return FlatBank, (self._folder, self._kind, self._inode)


def flat_bank(
    folder: Path,
    paths: Sequence[Path],
    read: Callable[[int], NDArray[T]],
    kind: type[T],
    ranks: Ranks,
    made: object = None,
) -> FlatBank[T]:
    """The bank in ``folder``, which the first rank fills unless that has been done. ``read(i)`` decodes file number i.

    ``made`` says what is made of a file, where that can change: a bank of something else is made anew.
    """
    if ranks.first:
        files = [[os.path.abspath(path), *_stamp(path)] for path in paths]
        wanted = json.dumps({"kind": kind.__name__, "made": made, "files": files}).encode()
        manifest = folder / MANIFEST
        if not (manifest.exists() and manifest.read_bytes() == wanted and _is_whole(folder, len(paths), kind)):
            with writing(folder, ROOM):
                _remove(folder)
                _fill(folder, len(paths), read, kind, wanted)
    ranks.wait()
    return FlatBank(folder, kind)


def _remove(folder: Path) -> None:
    """Who reads the bank keeps what it has: its file lives on until then, without a name.

    What another process is about to write stays, too. A file under this one's own number is of an earlier process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    left = [file for file in folder.glob("*.new") if not _another_writes(file)]
    for old in (folder / MANIFEST, folder / VALUES, folder / SHAPES, *left):
        old.unlink(missing_ok=True)


def _another_writes(file: Path) -> bool:
    """Whether the number in the file's name is that of another process that lives."""
    number = file.name.split(".")[-2]
    if not number.isdecimal() or int(number) == os.getpid():
        return False
    try:
        os.kill(int(number), 0)  # which only asks
    except PermissionError:  # it lives, and is another user's
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _fill(folder: Path, count: int, read: Callable[[int], NDArray[T]], kind: type[T], manifest: bytes) -> None:
    """Under names of this process's own: two that fill the bank at once do not write into one file.

    The manifest comes last, after that of another process is gone: an interrupted build is begun again.
    """
    shapes = []
    new = {name: folder / f"{name}.{os.getpid()}.new" for name in (VALUES, SHAPES, MANIFEST)}
    try:
        with open(new[VALUES], "xb") as out, ThreadPoolExecutor(THREADS) as pool:
            for begin in range(0, count, AT_ONCE):
                for values in pool.map(read, range(begin, min(begin + AT_ONCE, count))):
                    shapes.append(values.shape)
                    out.write(np.ascontiguousarray(values, kind).data)  # tofile's buffer says nothing of a full disk
        with open(new[SHAPES], "xb") as out:
            np.save(out, np.array(shapes, np.int64))
        new[MANIFEST].write_bytes(manifest)
        (folder / MANIFEST).unlink(missing_ok=True)
        for name, file in new.items():
            os.replace(file, folder / name)
    finally:
        for file in new.values():
            file.unlink(missing_ok=True)


def _is_whole(folder: Path, count: int, kind: type[np.generic]) -> bool:
    """Whether the files hold as many arrays and values as they should."""
    try:
        with open(folder / SHAPES, "rb") as file:
            shapes = np.lib.format.read_array(file)
        size = (folder / VALUES).stat().st_size
    except Exception:  # numpy raises OSError, ValueError, EOFError, SyntaxError, TokenError, ... of a damaged file
        return False
    fits = shapes.dtype == np.int64 and shapes.ndim == 2 and len(shapes) == count
    return bool(fits and shapes.min() >= 0 and shapes.prod(axis=1).sum() * np.dtype(kind).itemsize == size)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as err:
        raise DataError(path, f"cannot be read: {err.strerror}.") from err
    return status.st_size, status.st_mtime_ns
