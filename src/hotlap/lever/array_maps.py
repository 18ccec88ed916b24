"""``numpy.load`` by mapping: an array file that is loaded again is mapped, so that only what is used of it is read."""

from __future__ import annotations

import functools
import os
import time
import weakref
from collections.abc import Callable
from typing import Any

from hotlap.lever.sources import file_key

__all__ = ["mapping_load"]

_FILES = 4096
"""Files that are remembered; a data set of a file per sample gains nothing by mapping."""
_MAPS = 1000
"""Mappings alive at once; the system allows some 65,000 per process, and the script may keep every array."""
_SETTLED_S = 2.0
"""A file written less than this before the start may still be being written."""


class _Maps:
    """Mappings alive now."""

    def __init__(self) -> None:
        self.alive = 0

    def add(self, array: Any) -> None:
        self.alive += 1
        weakref.finalize(array, self._gone)

    def _gone(self) -> None:
        self.alive -= 1


def mapping_load(numpy: Any, min_bytes: int, used: Callable[[], None]) -> Callable[..., Any]:
    """``numpy.load`` that maps a ``.npy`` file privately from its second load on: same bits, the caller's to change.

    Only a path with no other argument, of at least ``min_bytes``, not written since the start, holding plain numbers.
    ``used`` is called after each mapping.
    """
    load = numpy.load
    begun = time.time()
    known: dict[str, str] = {}
    maps = _Maps()

    def mappable(path: Any) -> bool:
        key = file_key(path)
        if key is None or not os.fspath(path).endswith(".npy") or maps.alive >= _MAPS:
            return False
        facts = os.stat(path)
        if facts.st_size < min_bytes or facts.st_mtime > begun - _SETTLED_S:
            return False
        name = os.path.abspath(path)
        seen = known.get(name) == key
        if seen or len(known) < _FILES:
            known[name] = key
        return seen

    @functools.wraps(load)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs or not mappable(args[0]):
            return load(*args, **kwargs)
        try:
            array = load(args[0], mmap_mode="c")
        except (ValueError, OSError):  # objects or nothing in it, or no more mappings: as without us
            return load(*args, **kwargs)
        if type(array) is not numpy.memmap:
            return array
        maps.add(array)
        used()
        return array.view(numpy.ndarray)

    return mapped
