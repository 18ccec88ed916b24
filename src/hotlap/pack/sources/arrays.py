"""Arrays on disk: ``.npy``, ``.npz``, ``.pt``/``.pth``. Never unpickled: only plain arrays and tensors are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.pack.sources.read import stamp
from hotlap.records.errors import HotlapError

__all__ = ["ArraySource"]


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
        return {**self.__dict__, "_columns": None}  # each process maps the file itself

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._columns = _load(self._path)


def _load(path: str) -> dict[str, Any]:
    try:
        if path.endswith(".npy"):
            return {"data": _rows(np.load(path, mmap_mode="r", allow_pickle=False), path)}
        if path.endswith(".npz"):
            with np.load(path, allow_pickle=False) as found:
                return {name: _rows(found[name], path) for name in found.files}
        return _tensors(path)
    except (OSError, ValueError, EOFError) as err:
        raise HotlapError(f"{path} cannot be read: {err}", "Pickled objects are never read.") from err


def _rows(array: Any, path: str) -> Any:
    if array.ndim == 0:
        raise HotlapError(f"{path} holds a single number, not rows.")
    return array


def _tensors(path: str) -> dict[str, Any]:
    import pickle

    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (pickle.UnpicklingError, RuntimeError) as err:
        raise HotlapError(f"{path} holds more than tensors, or is damaged.", "Pickled objects are never read.") from err
    if isinstance(found, torch.Tensor):
        found = {"data": found}
    elif isinstance(found, list | tuple):
        found = {f"data{k}": value for k, value in enumerate(found)}
    if not isinstance(found, Mapping) or not all(isinstance(v, torch.Tensor) for v in found.values()):
        raise HotlapError(f"{Path(path).name} must hold a tensor, or a dict or list of tensors.")
    return {str(name): _rows(value, path) for name, value in found.items()}
