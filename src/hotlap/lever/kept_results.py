"""Results in a cache, each with the files that it was made of: one of which a file has changed is none any more."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

from hotlap.lever.file_cache import FileCache, in_worker
from hotlap.lever.opened_files import Files, are_unchanged, note_opened, with_files
from hotlap.lever.sample_codec import copied, pack, unpack

__all__ = ["AGAIN", "Comparisons", "KeptResults"]

AGAIN, RAREST = 64, 1024
"""Results given from the cache of which one is computed all the same and compared: at the start of each epoch, and,
doubled each time, at most. One in 64 alone would leave no more than a speedup of 64."""


class Comparisons:
    """When a kept result is computed all the same: one in each stretch of given ones, at a place that no order of the
    samples hits upon again and again. Workers may begin anew with each epoch: there each has places of its own."""

    def __init__(self) -> None:
        self.given = 0
        """Results from the cache until now."""
        self._pid = os.getpid()
        self._dice = random.Random(None if in_worker() else 0)
        self._apart = self._end = AGAIN
        self._due = self._dice.randint(1, AGAIN) if in_worker() else AGAIN

    def begin(self) -> None:
        """An epoch begins."""
        if self._pid != os.getpid():  # forked meanwhile, as others are that go on from the same numbers
            self._pid, self._due = os.getpid(), 0
            self._dice.seed()
        self._apart, self._end = AGAIN, self.given + AGAIN
        if not self.given < self._due <= self._end:
            self._due = self.given + self._dice.randint(1, AGAIN)

    def are_due(self, given: int = 1) -> bool:
        """Count so many; whether one of them is to be compared."""
        before, self.given = self.given, self.given + given
        due = before < self._due <= self.given
        while self.given >= self._end:
            self._apart = min(2 * self._apart, RAREST)
            self._due, self._end = self._end + self._dice.randint(1, self._apart), self._end + self._apart
            due = due or before < self._due <= self.given
        return due


class KeptResults:
    """In ``cache``, by name."""

    def __init__(self, cache: FileCache) -> None:
        self._cache = cache

    def get(self, key: str) -> Any:
        """What is kept under ``key``, a copy of the caller's own; None without it."""
        own = self._cache.value(key)
        data = self._cache.get(key) if own is None else None
        known = unpack(data) if data is not None else own
        if known is None or not are_unchanged(known[0]):
            return None
        note_opened(None, known[0])
        return copied(known[1]) if own is not None else known[1]

    def keep(self, key: str, value: Any, files: Files) -> None:
        """Unless it cannot be kept, a file is another already, or there is no room."""
        packed = pack((files, value)) if are_unchanged(files) else None
        if packed is not None and not self._cache.keep_value(key, (files, copied(value)), len(packed)):
            self._cache.put(key, packed)

    def through(self, key: str, compute: Callable[[], Any]) -> Any:
        """What is kept under ``key``; else what ``compute`` gives, kept if it can be."""
        found = self.get(key)
        if found is None:
            found, files = with_files(compute)
            self.keep(key, found, files)
        return found

    def forget(self, beginning: str) -> None:
        """All whose name begins so, up to its second bar."""
        self._cache.forget(beginning)
