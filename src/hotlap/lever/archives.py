"""Arrays of ``.npz`` archives through the cache: ``numpy.load`` only opens one, and decodes each when asked."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from hotlap.lever.file_cache import FileCache
from hotlap.lever.readers import kept, through
from hotlap.lever.sources import file_key

__all__ = ["cached_archive", "cached_member"]

_KEY = "_hotlap_file"
"""Attribute of an opened archive: what identifies its file (an archive cannot be the key of a dict)."""
_NAMES = {"files", "_files"}
_MANNER = {"allow_pickle", "max_header_size", "pickle_kwargs"}
_OPENED = {"zip", "fid", "f"}
"""Attributes of numpy's archives: of the file, of how it was asked for, of the open file."""


def cached_archive(cache: FileCache, archive_class: type, load: Callable[..., Any]) -> Callable[..., Any]:
    """``numpy.load``, whose archives opened by path know what file they are of.

    One whose names are known is opened only when it has to be: that takes longer than copying a small array.
    """
    manners: dict[Any, dict[str, Any]] = {}

    @functools.wraps(load)
    def opened(*args: Any, **kwargs: Any) -> Any:
        key = file_key(args[0]) if args else None
        how = (args[1:], tuple(kwargs.items()))
        if key is None or not _hashable(how):
            return load(*args, **kwargs)
        manner = manners.get(how)
        names = kept(cache, f"npz names|{key}") if manner is not None else None
        if manner is not None and names is not None:
            return _unopened(archive_class, functools.partial(load, *args, **kwargs), names | manner | {_KEY: key})
        result = load(*args, **kwargs)
        if type(result) is archive_class and key == file_key(args[0]):
            facts = vars(result)
            if facts.keys() == _NAMES | _MANNER | _OPENED:  # as this code knows them
                manners[how] = {name: facts[name] for name in _MANNER} | {"f": type(facts["f"])}
                through(cache, f"npz names|{key}", lambda: {name: facts[name] for name in _NAMES})
            facts[_KEY] = key
        return result

    return opened


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _unopened(archive_class: Any, load: Any, facts: dict[str, Any]) -> Any:
    """An archive of these facts, whose file is opened for who asks for it, or for an array that is not cached."""
    archive = archive_class.__new__(archive_class)
    file = _File(load)
    vars(archive).update(facts, zip=_Part(file, "zip"), fid=_Part(file, "fid"), f=facts["f"](archive))
    return archive


class _File:
    """The archive that is opened when a part of it is asked for."""

    def __init__(self, load: Any) -> None:
        self.name = os.fspath(load.args[0])
        self.archive: Any = None
        self._load = load

    def part(self, name: str) -> Any:
        if self.archive is None:
            self.archive = self._load()
        return getattr(self.archive, name)


class _Part:
    """The ``zip`` or the ``fid`` of an archive."""

    def __init__(self, file: _File, name: str) -> None:
        self._file, self._part = file, name
        self.name = file.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file.part(self._part), name)

    def close(self) -> None:
        if self._file.archive is not None:
            self._file.part(self._part).close()


def cached_member(cache: FileCache, getitem: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """``NpzFile.__getitem__`` through the cache."""

    @functools.wraps(getitem)
    def member(self: Any, name: str) -> Any:
        key = vars(self).get(_KEY)
        if key is None or self.zip is None or type(name) is not str:  # closed: numpy says so
            return getitem(self, name)
        how = f"npz|{self.allow_pickle}|{self.pickle_kwargs!r}|{name.removesuffix('.npy')}|{key}"
        return through(cache, how, lambda: getitem(self, name))

    return member
