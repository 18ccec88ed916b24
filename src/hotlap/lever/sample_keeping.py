"""Which samples, or parts of them, are kept: each training data set proves itself, and is let go when it changes."""

from __future__ import annotations

import functools
import os
import threading
from typing import TYPE_CHECKING, Any

from hotlap.lever.contract import Target
from hotlap.lever.fetching_threads import FetchingThreads
from hotlap.lever.file_cache import FileCache
from hotlap.lever.gathered import fetch_gathered
from hotlap.lever.kept_parts import KeptParts
from hotlap.lever.kept_results import KeptResults
from hotlap.lever.kept_samples import KeptSamples
from hotlap.lever.opened_files import watch_openings
from hotlap.lever.own_references import OwnReferences
from hotlap.lever.purity import IN_PLACE_OF
from hotlap.lever.sample_proof import proven
from hotlap.lever.sample_purity import impure_reason
from hotlap.lever.sample_table import Drawer, SampleTables
from hotlap.lever.told_lines import ToldLines, tell_line

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

__all__ = ["SampleKeeping"]

_DRAWN = "they did when drawn twice, or what they come from cannot be watched, or is opened at its first use"
_USED, _ENDED = "used", "ended"


class SampleKeeping:
    """All that a lever keeps. What any process finds out, the others are told: that a part is used, or that something
    may not be kept any more."""

    def __init__(self, target: Target, lever_id: str, max_bytes: int) -> None:
        self._target, self._pid = target, os.getpid()
        cache, fetching = FileCache(os.path.join(target.scratch, lever_id), max_bytes), FetchingThreads()
        results = KeptResults(cache)
        self._fetching, self._tables = fetching, SampleTables(cache, fetching)
        self._kept = KeptSamples(results, fetching, self._end)
        self._ours = OwnReferences()
        self._parts = KeptParts(target, results, fetching, self._use, self._end, self._ours.counted)
        self._standing: list[Any] = []
        self._is_watching = False
        self._told = os.path.join(target.scratch, f"{lever_id}.told")
        self._here, self._counted = ToldLines(self._told), ToldLines(self._told)
        self._used: set[str] = set()
        """Parts."""
        self._over: set[str] = set()
        """Parts and data sets, by their names."""
        target.around_step(self._step)
        target.at_exit(self._count)

    def consider(self, loader: DataLoader[Any]) -> None:
        """Let the data set of a training loader prove itself, and keep its samples, or parts of them."""
        from torch.utils.data import Subset

        dataset: Any = loader.dataset
        while isinstance(dataset, Subset):
            dataset = dataset.dataset
        if dataset in self._kept or not hasattr(type(dataset), "__getitem__"):
            return
        self._let_go()
        with self._ours.counted(dataset):
            self._begin(dataset)

    def _let_go(self) -> None:
        """Of data sets that the script holds no more, past folds', nothing is kept any longer."""
        for dataset in self._ours.abandoned():
            self._tables.end(dataset)
            self._parts.let_go(dataset)
            self._kept.let_go(dataset)

    def _begin(self, dataset: Any) -> None:
        kind = type(dataset)
        own = getattr(kind.__getitem__, IN_PLACE_OF, kind.__getitem__)
        draw = functools.partial(self._fetching.aside, own, dataset)
        changes = functools.partial(self._kept.changes, dataset)
        witness = proven(dataset, draw, functools.partial(changes, "were changed in place, or for long"))
        if witness is None:
            if self._parts.keep(dataset):
                self._watch()
            else:
                reason = impure_reason(dataset) or _DRAWN
                self._target.unfit(f"samples of {kind.__name__} may change between draws ({reason})")
            return
        if not len(self._kept):
            fetch_gathered(self._target, self._tables.choose)
        self._watch()
        self._kept.add(dataset, witness)
        if kind.__getitem__ not in self._standing:
            self._standing.append(self._kept.before(own))
            self._target.replace(kind, "__getitem__", self._standing[-1])
        else:  # of the class, or of one that it inherits from
            self._target.changed()
        differs = functools.partial(changes, "were others when they were drawn again")
        self._tables.add(Drawer(dataset, draw, functools.partial(self._kept.stands, dataset), differs))

    def _watch(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            self._fetching.watch(self._target, self._hear)
            watch_openings(self._target)

    def _use(self, name: str) -> None:
        """Results of a part are kept from now on, in this process."""
        if name not in self._used:
            tell_line(self._told, _USED, name)

    def _end(self, name: str, why: str) -> None:
        """What is kept under a name may not be given any more, in any process."""
        tell_line(self._told, _ENDED, name, " ".join(why.split()))
        self._drop(name)
        if os.getpid() == self._pid and threading.current_thread() is threading.main_thread():
            self._count()

    def _drop(self, name: str) -> None:
        dataset = self._kept.end(name)
        if dataset is not None:
            self._tables.end(dataset)
        self._parts.end(name)

    def _hear(self) -> None:
        """An epoch begins, here or in a worker that was forked a moment ago: drop what another process has found to
        change."""
        for word, name, *_ in self._here.new():
            if word == _ENDED:
                self._drop(name)

    def _step(self, optimizer: Any, step: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._count()
        return step(*args, **kwargs)

    def _count(self) -> None:
        """Changes, in the training process: one for all parts together, and one for each data set."""
        before = bool(self._used - self._over)
        for word, name, *why in self._counted.new():
            if name in self._over or not (self._kept.has(name) or self._parts.has(name)):
                continue  # of another process of the training
            if word == _USED:
                self._used.add(name)
                continue
            self._over.add(name)
            self._target.unfit(why[0])
            self._drop(name)
            if self._kept.has(name):
                self._target.changed(-1)
        now = bool(self._used - self._over)
        if now != before:
            self._target.changed(int(now) - int(before))
