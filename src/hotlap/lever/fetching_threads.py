"""Threads in which a loader fetches at this moment: samples drawn there are nobody's but the training's."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from threading import get_ident
from typing import Any

from hotlap.lever.contract import Target

__all__ = ["Epochs", "FetchingThreads"]

_EPOCH = "_hotlap_epoch"
"""Attribute of a fetcher, which torch makes anew for each epoch: the number of that epoch."""


class FetchingThreads:
    """``here()`` tells whether this thread is one, as soon as the fetchers of torch are watched."""

    def __init__(self) -> None:
        self._threads: dict[int, int] = {}
        """Each with the number of the epoch that it fetches for."""
        self._numbers = itertools.count(1)
        self._watched = False
        self._begins: list[Callable[[], None]] = []

    def here(self) -> bool:
        """Whether a loader fetches in this thread."""
        return get_ident() in self._threads

    def epoch(self) -> int:
        """The number of the epoch that a loader fetches for here, higher than those of all that began before: in this
        process, or before it was forked. 0 where none does, or where it began before the fetchers were watched."""
        return self._threads.get(get_ident(), 0)

    def aside(self, call: Callable[..., Any], *args: Any) -> Any:
        """What ``call`` gives while no loader seems to fetch here: nothing on its way is given from a cache."""
        thread = get_ident()
        if thread not in self._threads:
            return call(*args)
        epoch = self._threads.pop(thread)
        try:
            return call(*args)
        finally:
            self._threads[thread] = epoch

    def watch(self, target: Target, begins: Callable[[], None] | None = None) -> None:
        """Know from now on when a loader fetches. Counts no change. ``begins`` is called when one begins an epoch."""
        if begins is not None and begins not in self._begins:
            self._begins.append(begins)
        if self._watched:
            return
        self._watched = True
        from torch.utils.data._utils import fetch

        real: Any = fetch._MapDatasetFetcher.fetch
        threads = self._threads

        @functools.wraps(real)
        def fetches(fetcher: Any, index: Any) -> Any:
            thread = get_ident()
            if thread in threads:
                return real(fetcher, index)
            threads[thread] = getattr(fetcher, _EPOCH, 0)
            try:
                return real(fetcher, index)
            finally:
                threads.pop(thread, None)

        own: Any = vars(fetch._MapDatasetFetcher).get("__init__")

        @functools.wraps(fetch._MapDatasetFetcher.__init__)
        def __init__(fetcher: Any, *args: Any, **kwargs: Any) -> None:
            made = own or fetch._BaseDatasetFetcher.__init__  # which another lever may replace later
            made(fetcher, *args, **kwargs)
            setattr(fetcher, _EPOCH, next(self._numbers))
            for look in self._begins:
                look()

        target.replace(fetch._MapDatasetFetcher, "fetch", fetches)
        target.replace(fetch._MapDatasetFetcher, "__init__", __init__)
        target.changed(-2)


class Epochs:
    """The epochs in which something was used. Which one a new loader's iterator begins with, a data set around it would
    not tell, and most are of other data: so it is looked at when it is used first."""

    def __init__(self, fetching: FetchingThreads) -> None:
        self._fetching = fetching
        self._seen = 0

    def begins(self) -> bool:
        """Whether this is the first use in an epoch."""
        epoch = self._fetching.epoch()
        if epoch <= self._seen:
            return False
        self._seen = epoch
        return True
