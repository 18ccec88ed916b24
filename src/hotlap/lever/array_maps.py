"""``numpy.load`` by mapping: an array file that is loaded again is mapped, so that only what is used of it is read.

To write over a file truncates it, which takes away what is mapped of it: ``numpy.save`` puts another file in its place.
"""

from __future__ import annotations

import functools
import os
import time
import weakref
from collections.abc import Callable
from typing import Any

from hotlap.lever.sources import file_key
from hotlap.lever.whole_files import is_replaceable, write_beside

__all__ = ["mapping_load", "sparing_save"]

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


def sparing_save(numpy: Any, min_bytes: int) -> Callable[..., Any]:
    """``numpy.save`` that writes beside a file of at least ``min_bytes`` and then takes its place: a worker may have
    mapped it, and the array that is saved may lie in it."""
    save = numpy.save

    @functools.wraps(save)
    def spared(*args: Any, **kwargs: Any) -> Any:
        place = _written_over(args[0] if args else kwargs.get("file"), min_bytes)
        if place is None:
            return save(*args, **kwargs)

        def write(path: str) -> None:
            save(path, *args[1:], **{name: value for name, value in kwargs.items() if name != "file"})

        write_beside(write, place)

    return spared


def _written_over(path: Any, min_bytes: int) -> str | None:
    """The file that ``numpy.save`` is about to truncate, where it is one that may be mapped and may be written to."""
    if not isinstance(path, str | os.PathLike) or not isinstance(name := os.fspath(path), str):
        return None
    place = os.path.realpath(name if name.endswith(".npy") else name + ".npy")
    folder = os.path.dirname(place)
    able = is_replaceable(place) and os.access(folder, os.W_OK | os.X_OK)
    return place if able and os.path.exists(place) and os.path.getsize(place) >= min_bytes else None
