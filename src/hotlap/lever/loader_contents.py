"""All that the workers of a loader get a copy of when they begin: what it holds, and whether it changes later."""

from __future__ import annotations

import operator
import random
import sys
from time import thread_time
from types import FunctionType
from typing import TYPE_CHECKING, Any

from hotlap.lever.contents import Contents
from hotlap.lever.held_values import Changing
from hotlap.lever.purity import is_generator
from hotlap.lever.sample_purity import EveryReading
from hotlap.lever.users_code import is_users

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

__all__ = ["LoaderContents"]

WHOLE_BYTES = 64 << 20
"""Arrays of this size are read whole in a tenth of a second, which is what workers take to begin."""
_MOST_BYTES = 2 * WHOLE_BYTES
"""In all."""
LONGEST_LOOK_S = 0.2
_MOST_MET = 50_000
"""Objects and containers: to look at as many takes a moment."""


class LoaderContents:
    """Of the data set, the collate function and the workers' preparation, and what the script's code in them reads."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._things = _copied(loader)
        self._reading = _LoaderReading(*self._things)

    @property
    def generator(self) -> str | None:
        """The kind of a generator of random numbers among them that is none of the process' own, which workers seed."""
        return self._reading.generator

    def is_of(self, loader: DataLoader[Any]) -> bool:
        """Whether the loader still has the data set and the functions that it had."""
        return all(map(operator.is_, self._things, _copied(loader)))

    def look(self) -> Contents | None:
        """As they are now; None where a change could be missed, or where to look takes longer than workers to begin."""
        if self._reading.reason is not None:
            return None
        begun = thread_time()
        try:
            values = [*self._things, *self._reading.values()]
            found = Contents(*values, whole_bytes=WHOLE_BYTES, most_bytes=_MOST_BYTES)
        except Exception:  # Unwatched, or an attribute of the user's that raises
            return None
        return found if found.is_whole and thread_time() - begun < LONGEST_LOOK_S else None


def _copied(loader: DataLoader[Any]) -> list[Any]:
    return [loader.dataset, loader.collate_fn, loader.worker_init_fn]


class _LoaderReading(EveryReading):
    def __init__(self, *things: Any) -> None:
        self.generator: str | None = None
        super().__init__(*things)

    def _is_followed(self, function: FunctionType) -> bool:
        return is_users(function)

    def _is_new(self, value: Any) -> bool:
        if len(self._met) > _MOST_MET:
            raise Changing("it holds more than can be looked at")
        return super()._is_new(value)

    def _hold_object(self, value: Any, kind: Any) -> None:
        if is_generator(value):
            if not any(value is known for known in _generators_of_process()):
                self.generator = self.generator or kind.__name__
            return
        super()._hold_object(value, kind)


def _generators_of_process() -> list[Any]:
    """Which each worker seeds with a number of its own."""
    found: list[Any] = [getattr(random.random, "__self__", None)]
    for module, name in (("numpy.random.mtrand", "_rand"), ("torch", "default_generator")):
        found.append(getattr(sys.modules.get(module), name, None))
    return found
