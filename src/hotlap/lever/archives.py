"""Arrays of ``.npz`` archives through the cache: ``numpy.load`` only opens one, and decodes each when asked."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hotlap.lever.file_cache import FileCache
from hotlap.lever.readers import file_key, through

__all__ = ["cached_member", "with_key"]

_KEY = "_hotlap_file"
"""Attribute of an opened archive: what identifies its file (an archive cannot be the key of a dict)."""


def with_key(archive_class: type, load: Callable[..., Any]) -> Callable[..., Any]:
    """``numpy.load``, whose archives opened by path know what file they are of."""

    @functools.wraps(load)
    def opened(*args: Any, **kwargs: Any) -> Any:
        result = load(*args, **kwargs)
        if type(result) is archive_class:
            key = file_key(args[0] if args else kwargs.get("file"))
            if key is not None:
                vars(result)[_KEY] = key
        return result

    return opened


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
