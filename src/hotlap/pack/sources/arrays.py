"""Arrays on disk: ``.npy``, ``.npz``, ``.pt``/``.pth``. Never unpickled: only plain arrays and tensors are read."""

from __future__ import annotations

import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.pack.available import memory_bytes
from hotlap.pack.sources.contract import reason
from hotlap.pack.sources.read import stamp
from hotlap.records.errors import HotlapError

__all__ = ["ArraySource"]

_PICKLED = "Pickled objects are never read."


class ArraySource:
    """Columns of equal length; each first dimension counts the rows."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.metadata: dict[str, Any] = {"source": path}
        self.ragged: frozenset[str] = frozenset()
        self._columns = _load(path)
        lengths = {name: len(values) for name, values in self._columns.items()}
        if len(set(lengths.values())) != 1:
            raise HotlapError(f"The arrays of {path} differ in length: {lengths}.")

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def name(self, index: int) -> str:
        return f"{self._path}[{index}]"

    def row(self, index: int) -> dict[str, Any]:
        return {name: values[index] for name, values in self._columns.items()}

    def fingerprint(self) -> str:
        return f"arrays {self._path} {stamp(self._path)}"

    def __getstate__(self) -> dict[str, Any]:
        if self._path.lower().endswith(".npz"):
            raise TypeError(f"{self._path} is unpacked in memory: once is enough")
        return {**self.__dict__, "_columns": None}  # each process maps the file itself

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._columns = _load(self._path)


def _load(path: str) -> dict[str, Any]:
    name = path.lower()
    try:
        if name.endswith(".npy"):
            return {"data": _rows(np.load(path, mmap_mode="r", allow_pickle=False), path)}
        if name.endswith(".npz"):
            _check_unpacked(path)
            with np.load(path, allow_pickle=False) as found:
                return {key: _rows(found[key], path) for key in found.files}
        return _tensors(path)
    except (OSError, ValueError, EOFError, MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error) as err:
        said = reason(err)
        is_pickled = "pickle" in said or "Python objects" in said
        hint = _PICKLED if is_pickled else "Is it whole, and of the kind that its name says? Get or make it again."
        raise HotlapError(f"{path} cannot be read: {said}.", hint) from err


def _check_unpacked(path: str) -> None:
    """Arrays of a ``.npz`` are unpacked into memory: a few KB of zeros can ask for all of it."""
    with zipfile.ZipFile(path) as found:
        size, most = sum(entry.file_size for entry in found.infolist()), memory_bytes() // 2
    if size > most:
        raise HotlapError(f"{path} takes {size} bytes unpacked; at most {most}, half of the memory, are.",
                          "Save its arrays as .npy, which are read in place.")  # fmt: skip


def _rows(array: Any, path: str) -> Any:
    if array.ndim == 0:
        raise HotlapError(f"{path} holds a single number, not rows.")
    return array


def _tensors(path: str) -> dict[str, Any]:
    import torch

    is_zip = zipfile.is_zipfile(path)  # what torch wrote before 1.6 is none, and cannot be mapped
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of pickles that it then refuses
            found = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
    except (OSError, MemoryError):
        raise
    except Exception as err:  # on damage, torch's reader of pickles raises whatever it meets
        raise HotlapError(f"{path} holds more than tensors, or is damaged.", _PICKLED) from err
    if isinstance(found, torch.Tensor):
        found = {"data": found}
    elif isinstance(found, list | tuple):
        found = {f"data{k}": value for k, value in enumerate(found)}
    if not isinstance(found, Mapping) or not all(isinstance(v, torch.Tensor) for v in found.values()):
        raise HotlapError(f"{Path(path).name} must hold a tensor, or a dict or list of tensors.")
    return {str(name): _rows(value, path) for name, value in found.items()}
