"""In the place of a function in C: a class that keeps it as an attribute must not get a method."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType
from typing import TypeVar, cast

__all__ = ["as_unbound"]

T = TypeVar("T")


class _Unbound(staticmethod):  # type: ignore[type-arg]
    """Called as the function is, without a frame of its own. Pickled by name, as functions are."""

    def __reduce__(self) -> str:
        return str(self.__qualname__)


def as_unbound(original: object, ours: T) -> T:
    """``ours``, such that ``class Trainer: log = print`` goes on working where ``original`` is a C function.

    Functions in Python bind as methods, and then get the instance as their first argument; those in C never do.
    """
    if not isinstance(original, BuiltinFunctionType) or not isinstance(ours, FunctionType):
        return ours
    return cast("T", _Unbound(ours))
