"""Any ``module:Dataset`` with ``__len__`` and ``__getitem__``: its samples as they come, tuple or dict."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
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
        try:
            self._length = len(self._data)
        except Exception as err:
            raise _theirs(f"len({spec})", err) from err

    def __len__(self) -> int:
        return self._length

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
    except Exception as err:
        raise _theirs(f"Importing {module_name}", err) from err
    if isinstance(found, type) or not hasattr(found, "__getitem__"):
        try:
            found = found()
        except Exception as err:
            if isinstance(err, TypeError) and err.__traceback__ is not None and err.__traceback__.tb_next is None:
                hint = "Name a function without arguments that returns the data set."
                raise HotlapError(f"{spec} cannot be made without arguments: {err}.", hint) from err
            raise _theirs(f"{spec}()", err) from err
    if not (hasattr(found, "__len__") and hasattr(found, "__getitem__")):
        raise HotlapError(f"{spec} has no __len__ and __getitem__: only map-style data sets can be packed.")
    return found


def _theirs(what: str, err: Exception) -> HotlapError:
    """An error of the user's own code, with the last line of it that ran (libraries that it called left out)."""
    frames = [f for f in traceback.extract_tb(err.__traceback__) if f.filename not in (__file__, "<string>")]
    frames = [f for f in frames if not f.filename.startswith("<frozen") and os.path.isfile(f.filename)]
    own = [f for f in frames if not f.filename.startswith((sys.prefix, sys.base_prefix))] or frames
    tells_itself = isinstance(err, SyntaxError) or not own
    place = "" if tells_itself else f" ({own[-1].filename}:{own[-1].lineno})"
    return HotlapError(f"{what} failed: {type(err).__name__}: {err}{place}.", "Repair it: the error is not Hotlap's.")
