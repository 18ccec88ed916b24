"""Verification sets as InsightFace ships them: a pickle of (image files, same or not), two images a trial.

A pickle can run any code when it is loaded. This one is loaded by a reader that knows byte strings, numbers, lists and
NumPy arrays, and refuses all else.
"""

from __future__ import annotations

import pickle
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from hotlap_workloads.errors import DataError

__all__ = ["BinPhotos", "read_bin"]

_ALLOWED = {
    ("_codecs", "encode"),  # how Python 3 writes bytes for readers of Python 2
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.numeric", "_frombuffer"),
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which a set of images has no need of")
        return getattr(import_module(module.replace("numpy.core", "numpy._core")), name)


class BinPhotos:
    """The images of one set. Their persons are not known: the label is 0."""

    def __init__(self, path: Path, contents: list[bytes]) -> None:
        self.path, self.identities, self._contents = path, 1, contents

    def __len__(self) -> int:
        return len(self._contents)

    def name(self, row: int) -> Path:
        return self.path / f"image {row}"

    def read(self, row: int) -> tuple[bytes, int]:
        return self._contents[row], 0

    def fingerprint(self) -> str:
        crc = 0
        for content in self._contents:
            crc = zlib.crc32(content, crc)
        return f"bin {len(self._contents)} {crc:08x}"


def read_bin(path: Path) -> tuple[BinPhotos, list[bool]]:
    """The images, two a trial, and whether each trial is of one person."""
    try:
        with open(path, "rb") as file:
            found = _Reader(file, encoding="bytes").load()
    except OSError as err:
        raise DataError(path, f"cannot be read: {err.strerror}.", "verification=NAME,... names the sets.") from err
    except EOFError as err:
        raise DataError(path, "is cut short.", "Copy it again.") from err
    except Exception as err:  # a damaged pickle raises whatever its opcodes stumble over
        what = "is cut short." if "truncated" in str(err) else f"cannot be read: {err}."
        raise DataError(path, what, "Copy it again from where it was published.") from err
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise DataError(path, f"holds a {type(found).__name__}, not a pair of images and answers.")
    if not all(isinstance(part, list | tuple | np.ndarray) for part in found):
        raise DataError(path, f"holds a pair of {' and '.join(type(part).__name__ for part in found)}, not of lists.")
    contents, same = [_bytes(path, i, image) for i, image in enumerate(found[0])], [bool(x) for x in found[1]]
    if len(contents) != 2 * len(same):
        raise DataError(path, f"holds {len(contents)} images for {len(same)} trials, which are two each.")
    return BinPhotos(path, contents), same


def _bytes(path: Path, number: int, image: Any) -> bytes:
    if isinstance(image, np.ndarray) and image.dtype == np.uint8:
        return image.tobytes()
    if not isinstance(image, bytes):
        raise DataError(path, f"image {number} is a {type(image).__name__}, not the bytes of an image file.")
    return image
