"""Passes over one loader stay apart where its workers are made to stay.

A loader with ``persistent_workers`` gives the same iterator at every pass, so that one that begins within another (one
batch looked at in mid-epoch, an evaluation on the training data, ``zip(loader, loader)``) takes that one's
batches, and ends it. Without them each pass is one of its own; so it stays here: a pass that somebody is in the middle
of keeps its iterator, and the new one gets another, with workers of its own. So does one before which the script has
changed what workers have copies of: the data set's epoch, its transforms, a table that grows, the collate function.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hotlap.lever.contents import Contents
from hotlap.lever.contract import Target
from hotlap.lever.loader_contents import LoaderContents

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

__all__ = ["keep_passes_apart"]


def keep_passes_apart(target: Target, loader: DataLoader[Any], contents: LoaderContents) -> None:
    """Of a loader that is about to be given persistent workers, which have copies of its ``contents``."""
    target.replace(loader, "_get_iterator", _Begins(loader, contents))


class _Begins:
    """Stands where its loader makes iterators, which it does not keep alive: its workers end with it."""

    def __init__(self, loader: Any, contents: LoaderContents) -> None:
        self._loader = weakref.ref(loader)
        self._contents = contents

    def __call__(self) -> Any:
        loader: Any = self._loader()
        if not self._contents.is_of(loader):  # the script has given it another collate function
            self._contents = LoaderContents(loader)
        contents = self._contents
        begun_with = contents.look()
        iterator = type(loader)._get_iterator(loader)
        _mind(iterator, functools.partial(self._is_as, contents, begun_with))
        return iterator

    def _is_as(self, contents: LoaderContents, before: Contents | None) -> bool:
        loader: Any = self._loader()
        now = contents.look() if before is not None and contents.is_of(loader) else None
        return before is not None and now is not None and now.same_as(before)

    def __reduce__(self) -> Any:  # sent elsewhere, a loader makes them as its class does: Hotlap may not be there
        loader: Any = self._loader()
        return functools.partial, (type(loader)._get_iterator, _Proxy(loader))


class _Proxy:
    """Is pickled as a weak proxy of the loader that it is made of."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __reduce__(self) -> Any:
        return weakref.proxy, (self._loader,)


def _mind(iterator: Any, is_current: Callable[[], bool]) -> None:
    """See whether a pass is over, and let none begin on an iterator that somebody is in the middle of, or whose workers
    have copies of what is another now."""
    met, kind = weakref.ref(iterator), type(iterator)
    over = False

    def next_data() -> Any:
        nonlocal over
        try:
            return kind._next_data(met())
        except StopIteration:
            over = True
            raise

    def reset(loader: Any, first_iter: bool = False) -> None:
        nonlocal over
        is_free = over or _held(met) <= _BY_ITS_LOADER
        if is_free and is_current():
            over = False
            kind._reset(met(), loader, first_iter)
            return
        if is_free:
            loader._iterator = None  # its workers end before others begin
        loader._iterator = loader._get_iterator()

    iterator._next_data, iterator._reset = next_data, reset


def _held(met: weakref.ref[Any]) -> int:
    """How often it is referred to, as Python counts here."""
    found = met()
    return sys.getrefcount(found)


class _Holder:
    """Of another of its kind."""

    held: Any = None


def _held_once() -> int:
    holder = _Holder()
    holder.held = _Holder()
    return _held(weakref.ref(holder.held))


_BY_ITS_LOADER = _held_once()
