"""Digests of bytes, and of containers that hold plain values, of no more bytes in all than may be read."""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import sys
import types
from typing import Any

__all__ = ["BytesRead", "Unwatched", "digest_of_plain"]

_SMALL_BYTES = 1 << 16
"""Arrays up to this size are read with the container that holds them, of which there may be a million in one."""
_NAMES = (type, types.ModuleType, types.BuiltinFunctionType)


class Unwatched(Exception):
    """It holds too much to be looked at again."""


class BytesRead:
    """That are read: at most so many in all."""

    def __init__(self, most: int | None) -> None:
        self._left = math.inf if most is None else most

    def read(self, data: Any) -> Any:
        self._left -= memoryview(data).nbytes
        if self._left < 0:
            raise Unwatched
        return data

    def digest(self, data: Any) -> bytes:
        return hashlib.blake2b(self.read(data), digest_size=16).digest()


class _PlainPickler(pickle.Pickler):
    """Takes builtin values, names, paths, numpy's small arrays and numbers, and objects that are pickled by attributes.

    What it pickles it may copy, and keep until it is done: it takes neither large arrays nor memory maps. Nor an
    object with a ``__getattr__``, which would be asked for attributes that are not there, unless it is a dictionary.
    """

    def reducer_override(self, obj: Any) -> Any:
        kind: Any = type(obj)
        plainly = kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__
        stateless = getattr(kind, "__getstate__", None) is getattr(object, "__getstate__", None)
        is_function = isinstance(obj, types.FunctionType)
        of_numpy = (obj if is_function else kind).__module__.partition(".")[0] == "numpy"
        known = isinstance(obj, (*_NAMES, os.PathLike)) or of_numpy
        asks = hasattr(kind, "__getattr__") and not isinstance(obj, (*_NAMES, dict))
        if asks or (of_numpy and not is_function and _is_large(obj)):
            raise pickle.PicklingError
        if known or (plainly and stateless and not is_function):
            return NotImplemented
        raise pickle.PicklingError


def _is_large(value: Any) -> bool:
    """Whether it is an array of numpy's that is looked at by itself: a large one, a memory map, one with a mask."""
    numpy: Any = sys.modules["numpy"]
    if not isinstance(value, numpy.ndarray):
        return False
    return type(value) is not numpy.ndarray or value.nbytes > _SMALL_BYTES


class _Hash:
    def __init__(self, read: BytesRead) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._read = read

    def write(self, data: Any) -> None:
        self._hash.update(self._read.read(data))

    def digest(self) -> bytes:
        return self._hash.digest()


def digest_of_plain(value: Any, read: BytesRead) -> bytes | None:
    """Of a container that holds plain values through and through; None for any other."""
    out = _Hash(read)
    try:
        _PlainPickler(out, protocol=5).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError, ValueError):
        return None
    return out.digest()
