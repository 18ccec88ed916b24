"""Any ``module:Dataset`` with ``__len__`` and ``__getitem__``: its samples as they come, tuple or dict."""

from __future__ import annotations

import importlib
import io
import os
import pickle
import sys
import traceback
import zlib
from collections.abc import Mapping
from typing import Any

from hotlap.pack.schema import column_of, to_row
from hotlap.records.errors import HotlapError

__all__ = ["DatasetSource"]

MOST_BYTES = 256 << 20
"""A data set that takes more is not sent to other processes: each would hold a copy of it."""
_COMPARED = 8
"""Rows that another process has to read as this one does."""


class DatasetSource:
    """``module:name``: a data set, or a class or function that makes one when called without arguments.

    Made once: a second one may hold its rows in another order (a shuffle without a seed, a list of a set). Other
    processes get this one by pickle, and look whether rows of it are the same there.
    """

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
        """Reads rows first: what it remembers of them goes along."""
        rows = range(0, self._length, max(1, self._length // _COMPARED))
        marks = {index: mark for index in rows if (mark := self._mark(index)) is not None}
        repeatable = {index: mark for index, mark in marks.items() if self._mark(index) == mark}
        return {**self.__dict__, "_data": _pickled(self._data), "_marks": repeatable}

    def __setstate__(self, state: dict[str, Any]) -> None:
        marks: dict[int, int] = state.pop("_marks")
        self.__dict__.update(state)
        self._data = pickle.loads(state["_data"])
        for index, mark in marks.items():
            if self._mark(index) != mark:  # by what is no part of it: a list that its module makes of a set
                raise HotlapError(f"{self.name(index)} is another row in another process.")

    def _mark(self, index: int) -> int | None:
        """A checksum of a row, its columns' names included; None where it cannot be packed."""
        crc = 0
        try:
            for name, value in self.row(index).items():
                stored = to_row(column_of(name, value), value)
                content = stored if isinstance(stored, bytes) else stored.tobytes()
                crc = zlib.crc32(content, zlib.crc32(name.encode(), crc))
        except Exception:  # the packing tells of it, if it comes to that row
            return None
        return crc


class _Bounded(io.BytesIO):
    """Takes so many bytes at most."""

    def write(self, content: Any) -> int:
        _check_size(self.tell() + memoryview(content).nbytes)
        return super().write(content)


class _Pickler(pickle.Pickler):
    """Looks at arrays and tensors before they are copied: one that is mapped from a file may be larger than memory."""

    def reducer_override(self, found: Any) -> Any:
        if type(found).__module__.partition(".")[0] in ("numpy", "torch"):
            size = getattr(found, "nbytes", 0)  # of torch's storages a method
            _check_size(size() if callable(size) else size)
        return NotImplemented


def _check_size(size: Any) -> None:
    if isinstance(size, int) and size > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES} bytes")


def _pickled(data: Any) -> bytes:
    out = _Bounded()
    _Pickler(out, pickle.HIGHEST_PROTOCOL).dump(data)
    return out.getvalue()


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
