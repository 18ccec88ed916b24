"""Threads in which a loader fetches at this moment: samples drawn there are nobody's but the training's."""

from __future__ import annotations

import functools
from threading import get_ident
from typing import Any

from hotlap.lever.contract import Target

__all__ = ["FetchingThreads"]


class FetchingThreads:
    """``here()`` tells whether this thread is one, as soon as the fetchers of torch are watched."""

    def __init__(self) -> None:
        self._threads: set[int] = set()
        self._watched = False

    def here(self) -> bool:
        """Whether a loader fetches in this thread."""
        return get_ident() in self._threads

    def watch(self, target: Target) -> None:
        """Know from now on when a loader fetches. Counts no change."""
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
            threads.add(thread)
            try:
                return real(fetcher, index)
            finally:
                threads.discard(thread)

        target.replace(fetch._MapDatasetFetcher, "fetch", fetches)
        target.changed(-1)
