"""All that the values hold which a function reads: what is in containers, attributes, methods and arguments given."""

from __future__ import annotations

import functools
import logging
import random
from collections import deque
from types import BuiltinFunctionType, MethodType
from typing import Any

from hotlap.lever.effects import unnamed_methods
from hotlap.lever.purity import draws_by_name
from hotlap.lever.users_code import is_standard
from hotlap.lever.watched_kinds import FLAT, PLAIN, inside, is_alone, is_numbers

__all__ = ["CONTAINERS", "Changing", "HeldValues"]

CONTAINERS = (list, tuple, set, frozenset, dict, deque)
_MOST_SEEN, _DEEP = 2000, 6
_BUILT_IN = ("builtins", "collections")


class Changing(Exception):
    """Why results may change."""


class HeldValues:
    """Of ``holder``, whose code is read, and of what that names. Objects are held by class: their methods are to be
    followed."""

    def __init__(self, holder: Any) -> None:
        self._holder = holder
        self._seen: set[Any] = set()
        self._met: dict[int, Any] = {}
        """Objects that were looked at, kept alive meanwhile: no other is given the address of one."""
        self._objects: dict[type, list[Any]] = {}
        """That are held, by class: their methods are followed."""

    def _refuse(self, why: str) -> None:
        raise Changing(why)

    def _is_code(self, value: Any) -> bool:
        raise NotImplementedError

    def _unnamed(self, kind: type) -> list[str]:
        """Methods of the objects of a class that are held, which may be used without being named."""
        return unnamed_methods(kind)

    def _is_new(self, value: Any) -> bool:
        if id(value) in self._met:
            return False
        self._met[id(value)] = value
        return True

    def _hold(self, value: Any) -> None:
        """A value that is read: it must be one that can be watched."""
        kind: Any = type(value)
        if is_alone(value) or self._is_code(value):
            return
        if is_numbers(value):
            if getattr(getattr(value, "dtype", None), "hasobject", False) and self._is_new(value):
                self._hold_all(value.ravel().tolist())
        elif isinstance(value, MethodType):
            self._hold(value.__func__)
            self._hold(value.__self__)
        elif isinstance(value, BuiltinFunctionType):  # a library's, or a method of an object: of an iterator, a file
            if draws_by_name(value.__name__):
                self._refuse(f"it uses {value.__name__}")
            self._hold(value.__self__)
        elif isinstance(value, functools.partial):
            if self._is_new(value):
                self._hold_all([value.func, *value.args, *value.keywords.values()])
        elif isinstance(value, CONTAINERS) and (kind.__module__ in _BUILT_IN or hasattr(kind, "_fields")):
            if self._is_new(value):
                self._hold_all(inside(value))
            if hasattr(kind, "_fields"):  # it may have methods
                self._objects.setdefault(kind, [value])
        else:
            self._hold_object(value, kind)

    def _hold_all(self, found: list[Any]) -> None:
        for _ in range(_DEEP):  # lists of tuples, or of dictionaries: there may be a million
            found = [part for part in found if type(part) not in PLAIN]
            if not {type(part) for part in found} <= FLAT:
                break
            found = [inner for part in found for inner in inside(part)]
        for part in found:
            self._hold(part)

    def _hold_object(self, value: Any, kind: Any) -> None:
        unseen = isinstance(value, random.Random | logging.Logger | dict | list | tuple | set | frozenset | deque)
        known = is_standard(kind.__module__) or draws_by_name(kind.__name__)
        if unseen or known or not hasattr(value, "__dict__"):
            if kind is functools._lru_cache_wrapper:
                raise Changing(f"{value.__name__} keeps results")
            self._refuse(f"it uses a {kind.__name__}")
            return
        if value is self._holder or not self._is_new(value):
            return
        self._objects.setdefault(kind, []).append(value)
        if len(self._seen) + len(self._met) > _MOST_SEEN:
            raise Changing("it reads more than can be followed")
        for held in list(vars(value).values()):
            self._hold(held)
