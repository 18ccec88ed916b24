"""``__getitem__`` of a data set's class, with a cache before it that loaders alone get samples from."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from hotlap.lever.fetching_threads import FetchingThreads
from hotlap.lever.file_cache import FileCache
from hotlap.lever.purity import IN_PLACE_OF
from hotlap.lever.readers import through
from hotlap.lever.sample_proof import is_plain_index
from hotlap.lever.witness import Witness

__all__ = ["KeptSamples"]


class KeptSamples:
    """Data sets that have proven themselves, each with its witness and its name in the cache.

    Whoever draws by hand gets what the script's code gives: an epoch's look at the data set may be long ago then.
    """

    def __init__(self, cache: FileCache, fetching: FetchingThreads) -> None:
        self._cache, self._fetching = cache, fetching
        self._known: dict[int, tuple[Any, str, Witness]] = {}
        self._process = os.urandom(8).hex()
        """Another that uses the same folder may number other data sets so."""

    def __contains__(self, dataset: Any) -> bool:
        return id(dataset) in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, dataset: Any, witness: Witness) -> None:
        """From now on, samples of ``dataset`` are kept; the reference keeps its id from being given to another."""
        self._known[id(dataset)] = dataset, f"{self._process}|{len(self._known)}", witness

    def look(self, dataset: Any) -> None:
        """An epoch of it begins."""
        known = self._known.get(id(dataset))
        if known is not None:
            known[2].look()

    def before(self, draw: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """The ``__getitem__`` that takes the place of ``draw``."""
        fetching, cache = self._fetching, self._cache

        @functools.wraps(draw)
        def __getitem__(self_: Any, index: Any) -> Any:
            known = self._known.get(id(self_)) if fetching.here() else None
            if known is None or not is_plain_index(index) or not known[2].stands():
                return draw(self_, index)
            return through(cache, f"{known[1]}|{index.__index__()}", lambda: draw(self_, index))

        vars(__getitem__)[IN_PLACE_OF] = draw
        return __getitem__
