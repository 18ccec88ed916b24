"""``__getitem__`` of a data set's class, with a cache before it that loaders alone get samples from."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from typing import Any

from hotlap.lever.fetching_threads import Epochs, FetchingThreads
from hotlap.lever.kept_results import Comparisons, KeptResults
from hotlap.lever.opened_files import unnoted, with_files
from hotlap.lever.purity import IN_PLACE_OF
from hotlap.lever.sample_codec import same_bits
from hotlap.lever.sample_proof import is_plain_index
from hotlap.lever.witness import Witness

__all__ = ["KeptSamples"]


class _Known:
    """A data set that has proven itself. The reference keeps its id from being given to another."""

    def __init__(self, dataset: Any, name: str, witness: Witness, epochs: Epochs) -> None:
        self.dataset, self.name, self.witness, self.epochs = dataset, name, witness, epochs
        self.is_kept = True
        self.comparisons = Comparisons()


class KeptSamples:
    """Data sets that have proven themselves, each with its witness and its name in the cache. ``ended`` is called with
    the name of one whose samples turn out to change, and why they do: it is to call :meth:`end`.

    Whoever draws by hand gets what the script's code gives: an epoch's look at the data set may be long ago then.
    """

    def __init__(self, results: KeptResults, fetching: FetchingThreads, ended: Callable[[str, str], None]) -> None:
        self._results, self._fetching, self._ended = results, fetching, ended
        self._known: dict[int, _Known] = {}
        self._process = os.urandom(8).hex()
        """Another that uses the same folder may number other data sets so."""
        self._numbers = itertools.count()

    def __contains__(self, dataset: Any) -> bool:
        return id(dataset) in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, dataset: Any, witness: Witness) -> None:
        """From now on, samples of ``dataset`` are kept."""
        self._known[id(dataset)] = _Known(
            dataset, f"{self._process}|{next(self._numbers)}", witness, Epochs(self._fetching)
        )

    def has(self, name: str) -> bool:
        """Whether a data set has this name."""
        return any(known.name == name for known in self._known.values())

    def stands(self, dataset: Any) -> bool:
        """Whether kept samples of it may be used."""
        known = self._known.get(id(dataset))
        return known is not None and known.is_kept and self._stands(known)

    def _stands(self, known: _Known) -> bool:
        """At the first use in an epoch, it is looked at whole."""
        if known.epochs.begins():
            unnoted(known.witness.look)
            known.comparisons.begin()
        return known.witness.stands()

    def changes(self, dataset: Any, why: str) -> None:
        """Its samples are not always the same, after all."""
        known = self._known.get(id(dataset))
        if known is not None and known.is_kept:
            self._ended(known.name, f"samples of {type(dataset).__name__} {why}")

    def end(self, name: str) -> Any:
        """Keep no more of the data set of this name. Gives it, or None where none of that name is kept."""
        for known in self._known.values():
            if known.name == name and known.is_kept:
                known.is_kept = False
                self._results.forget(name)
                return known.dataset
        return None

    def let_go(self, dataset: Any) -> None:
        """Forget that it ever was one."""
        known = self._known.pop(id(dataset), None)
        if known is not None:
            self._results.forget(known.name)

    def before(self, draw: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """The ``__getitem__`` that takes the place of ``draw``."""

        @functools.wraps(draw)
        def __getitem__(self_: Any, index: Any) -> Any:
            known = self._known.get(id(self_)) if self._fetching.here() else None
            # what a class that comes from this one asks its parent for is no sample of its own
            outermost = getattr(type(self_).__getitem__, IN_PLACE_OF, None) is draw
            if known is None or not outermost or not known.is_kept or not is_plain_index(index):
                return draw(self_, index)
            if not self._stands(known):
                return draw(self_, index)
            return self._given(known, index, draw)

        vars(__getitem__)[IN_PLACE_OF] = draw
        return __getitem__

    def _given(self, known: _Known, index: Any, draw: Callable[[Any, Any], Any]) -> Any:
        key = f"{known.name}|{type(index).__name__}|{index.__index__()}"
        found = self._results.get(key)
        if found is None:
            value, files = with_files(lambda: self._fetching.aside(draw, known.dataset, index))
            self._results.keep(key, value, files)
            return value
        if not known.comparisons.are_due():
            return found
        value = self._fetching.aside(draw, known.dataset, index)
        if not same_bits(value, found):
            self.changes(known.dataset, "were others when they were drawn again")
        return value
