"""Any ``module:Dataset`` with ``__len__`` and ``__getitem__``: its samples as they come, tuple or dict."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

from hotlap.records.errors import HotlapError

__all__ = ["DatasetSource"]


class DatasetSource:
    """``module:name``: a data set, or a class or function that makes one when called without arguments."""

    def __init__(self, spec: str) -> None:
        self._spec = spec
        self.metadata: dict[str, Any] = {"source": spec}
        self.ragged: frozenset[str] = frozenset()
        self._data = _make(spec)

    def __len__(self) -> int:
        return len(self._data)

    def name(self, index: int) -> str:
        return f"{self._spec}[{index}]"

    def row(self, index: int) -> dict[str, Any]:
        sample = self._data[index]
        if isinstance(sample, Mapping):
            return {str(k): v for k, v in sample.items()}
        if isinstance(sample, tuple) and hasattr(sample, "_fields"):
            return dict(zip(sample._fields, sample, strict=True))
        values = sample if isinstance(sample, tuple | list) else (sample,)
        return {f"field{k}": v for k, v in enumerate(values)}

    def fingerprint(self) -> str:
        return f"dataset {self._spec} {len(self)}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_data": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._data = _make(self._spec)


def _make(spec: str) -> Any:
    module_name, _, path = spec.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` has it: the user's own module lies here
    try:
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as err:
        raise HotlapError(f"{spec} cannot be imported: {err}.", "Name it as module:Dataset, from this folder.") from err
    if isinstance(found, type) or not hasattr(found, "__getitem__"):
        try:
            found = found()
        except TypeError as err:
            raise HotlapError(f"{spec} cannot be made without arguments: {err}.",
                              "Name a function without arguments that returns the data set.") from err  # fmt: skip
    if not (hasattr(found, "__len__") and hasattr(found, "__getitem__")):
        raise HotlapError(f"{spec} has no __len__ and __getitem__: only map-style data sets can be packed.")
    return found
