"""A value that is set by calling something, dressed as an attribute, so that ``Target.replace`` can set and undo it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Knob"]

Thing = TypeVar("Thing")


class Knob:
    """``target.replace(Knob(read, write), "value", new)`` calls ``write(new)``; undo writes what ``read`` gave first.

    Deleting the attribute also restores, for targets that undo an attribute absent from ``__dict__`` by deleting it.
    """

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], None]) -> None:
        self._read = read
        self._write = write
        self._first = read()

    @classmethod
    def of(cls, thing: Thing, before: Any, write: Callable[[Thing, Any], None]) -> Knob:
        """One of an object that it does not keep alive: ``write(thing, value)``, with ``before`` on undo."""
        met = weakref.ref(thing)

        def written(value: Any) -> None:
            there = met()
            if there is not None:
                write(there, value)

        return cls(lambda: before, written)

    @property
    def value(self) -> Any:
        """The current value."""
        return self._read()

    @value.setter
    def value(self, new: Any) -> None:
        self._write(new)
        self.__dict__["value"] = new  # an undo that asks whether its own value is still there finds it

    @value.deleter
    def value(self) -> None:
        self._write(self._first)
        self.__dict__.pop("value", None)
