"""Whether a data set's code may give another sample for the same index: read from its code, without running it.

All that the data set holds is looked at, not only what its code names, and all code that it reaches: functions of the
script's modules, classes and objects, whichever of them a name may stand for.
"""

from __future__ import annotations

import functools
import io
from types import FunctionType, ModuleType
from typing import Any

from hotlap.lever.effects import hands_itself_on
from hotlap.lever.held_values import CONTAINERS, Changing
from hotlap.lever.part_purity import Reading
from hotlap.lever.purity import IN_PLACE_OF, draws_by_name, is_generator
from hotlap.lever.users_code import is_standard, is_users_module
from hotlap.lever.watched_kinds import attributes_of, in_slots, inside

__all__ = ["EveryReading", "SampleReading", "impure_reason"]

_CALLED = ("__call__", "forward", "__getitem__", "__getitems__")
"""What a library's data set calls of those in it."""
_NEVER_CALLED = ("__iter__", "__enter__", "__exit__")
"""What neither a loader nor a library's data set does with a data set of samples by index."""
_SAYS = frozenset(("print", "write", "warn", "warning", "logger", "logging", "stdout", "stderr"))
"""What a sample says when it is drawn, a kept one would not."""


class EveryReading(Reading):
    """Of things of any kind and all that they hold: what cannot be watched is no reason against them."""

    def __init__(self, *things: Any) -> None:
        self._things = things
        super().__init__(None, None)

    def _begin(self, function: FunctionType | None) -> None:
        self._names.update(_CALLED)
        for thing in self._things:
            self._hold(thing)

    def _refuse(self, why: str) -> None:
        pass

    def _refuse_store(self, name: str, function: FunctionType) -> None:
        pass

    def _is_read(self, name: str, module: ModuleType | None = None) -> bool:
        return is_users_module(name, module)

    def values(self) -> list[Any]:
        """Of modules and classes: what the things themselves hold is theirs."""
        return [names.get(name) for names, name in self._globals.values()]

    def _hold_of_class(self, kind: type, name: str, value: Any) -> None:
        self._hold(value)
        self._globals[id(kind), name] = vars(kind), name

    def _hold_object(self, value: Any, kind: Any) -> None:
        if not self._is_new(value):
            return
        if isinstance(value, CONTAINERS):
            self._hold_all(inside(value))
        if not is_standard(kind.__module__):
            self._objects.setdefault(kind, []).append(value)
        for held in [*attributes_of(value).values(), *(held for _, held in in_slots(value))]:
            self._hold(held)


class SampleReading(EveryReading):
    """Of a data set: ``reason`` says why a sample may be another when it is drawn again, or is None."""

    _is_handed_on = False
    """Whether other code than a loader's may have the data set itself: its own code gives it, or something holds it."""

    def _begin(self, function: FunctionType | None) -> None:
        (dataset,) = self._things
        if hasattr(dataset, "set_epoch"):
            self._refuse("it has set_epoch, so samples may differ by epoch")
        method = getattr(type(dataset), "__getitem__", None)
        if not isinstance(getattr(method, IN_PLACE_OF, method), FunctionType):
            self._refuse("its __getitem__ is not Python code")
        super()._begin(function)

    def _unnamed(self, kind: type) -> list[str]:
        found = super()._unnamed(kind)
        if self._is_handed_on or kind is not type(self._things[0]) or len(self._objects[kind]) > 1:
            return found
        return [name for name in found if name not in _NEVER_CALLED]

    def _follow(self, function: FunctionType, makes: bool = False, of: type | None = None) -> None:
        if of is type(self._things[0]) and self._is_followed(function):
            self._is_handed_on = self._is_handed_on or hands_itself_on(function)
        super()._follow(function, makes, of)

    def _refuse(self, why: str) -> None:
        raise Changing(why)

    def _refuse_store(self, name: str, function: FunctionType) -> None:
        raise Changing(f"{function.__name__} stores state ({name})")

    def _refuse_name(self, name: str, function: FunctionType) -> None:
        if draws_by_name(name):
            self._refuse(f"{function.__name__} uses {name}")
        if name in _SAYS:
            self._refuse(f"{function.__name__} says something ({name})")

    def _hold_object(self, value: Any, kind: Any) -> None:
        self._is_handed_on = self._is_handed_on or (value is self._things[0] and id(value) in self._met)
        if is_generator(value):
            self._refuse(f"it uses a private {kind.__name__}")
        if draws_by_name(kind.__name__):
            self._refuse(f"it holds a {kind.__name__}")
        if hasattr(kind, "set_epoch"):
            self._refuse(f"it holds a {kind.__name__} that has set_epoch")
        if kind is functools._lru_cache_wrapper:
            self._refuse(f"{value.__name__} keeps results")
        if hasattr(kind, "__next__") and not isinstance(value, io.IOBase):
            self._refuse(f"it uses a {kind.__name__}")
        super()._hold_object(value, kind)


def impure_reason(dataset: Any) -> str | None:
    """Why samples of ``dataset`` may change between draws, or None when nothing in its code says so. Unknown code of
    its own counts as a reason."""
    return SampleReading(dataset).reason
