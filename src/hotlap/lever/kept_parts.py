"""Functions that make parts of samples, each with a stand-in before it that loaders alone get kept results from."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from hotlap.lever.constant_parts import Part, constant_parts
from hotlap.lever.contract import Target
from hotlap.lever.fetching_threads import FetchingThreads
from hotlap.lever.kept_results import KeptResults
from hotlap.lever.part_memory import Keeping, PartMemory
from hotlap.lever.purity import IN_PLACE_OF

__all__ = ["KeptParts"]

OBJECTS = 16
"""Objects of one class whose results are kept: others are made in passing."""


class KeptParts:
    """The stand-ins of all parts, each with a name. ``used`` is called when results of one are kept from then on,
    ``ended`` with the reason why they may not be any more: it is to call :meth:`end`. References that are made
    within ``counted(object)`` are ours."""

    def __init__(
        self,
        target: Target,
        results: KeptResults,
        fetching: FetchingThreads,
        used: Callable[[str], None],
        ended: Callable[[str, str], None],
        counted: Callable[[Any], AbstractContextManager[None]],
    ) -> None:
        self._target, self._fetching = target, fetching
        self._keeping = Keeping(results, used, ended, target.unfit, fetching, self._longest, counted)
        self._datasets: dict[int, tuple[Any, list[Part]]] = {}
        self._known: dict[Any, dict[int, PartMemory]] = {}
        """By function, by object: only those that are met here, before workers are forked, have a name of their own."""
        self._process = os.urandom(8).hex()
        """Another that uses the same folder may number other objects so."""
        self._numbers = itertools.count()

    def _longest(self) -> int:
        with contextlib.suppress(Exception):  # the script's own, which need not have a length
            return max(len(dataset) for dataset, _ in self._datasets.values())
        return 0

    def keep(self, dataset: Any) -> bool:
        """Put a stand-in before each part of the samples of ``dataset``. Whether there are any. Counts no change."""
        found = constant_parts(dataset)
        for part in found:
            memories = self._known.setdefault(part.function, {})
            if not memories:
                self._target.replace(part.owner, part.name, _stand_in(part, memories, self._fetching))
                self._target.changed(-1)
            if id(part.holder) not in memories and len(memories) < OBJECTS:
                memories[id(part.holder)] = PartMemory(part, f"{self._process}|{next(self._numbers)}", self._keeping)
        if found:
            self._datasets[id(dataset)] = dataset, found
        return bool(found)

    def let_go(self, dataset: Any) -> None:
        """Keep no more results of objects that are parts of ``dataset`` alone."""
        _, parts = self._datasets.pop(id(dataset), (None, []))
        shared = {id(part.holder) for _, others in self._datasets.values() for part in others}
        for part in parts:
            memory = self._known[part.function].get(id(part.holder))
            if memory is not None and part.holder is not None and id(part.holder) not in shared:
                memory.end()
                del self._known[part.function][id(part.holder)]

    def has(self, name: str) -> bool:
        """Whether a part has this name."""
        return any(memory.name == name for memory in self._memories())

    def end(self, name: str) -> None:
        """Keep no more results of the part of this name."""
        for memory in self._memories():
            if memory.name == name:
                memory.end()

    def _memories(self) -> list[PartMemory]:
        return [memory for memories in self._known.values() for memory in memories.values()]


def _stand_in(part: Part, memories: dict[int, PartMemory], fetching: FetchingThreads) -> Callable[..., Any]:
    """What takes the place of ``part.function``: for loaders alone, and for each of its objects by itself."""
    function, here, bound = part.function, fetching.here, part.holder is not None

    @functools.wraps(function)
    def kept_part(*args: Any, **kwargs: Any) -> Any:
        if not here() or (bound and not args):
            return function(*args, **kwargs)
        memory = memories.get(id(args[0] if bound else None))
        return function(*args, **kwargs) if memory is None else memory.call(args, kwargs)

    vars(kept_part)[IN_PLACE_OF] = function
    return kept_part
