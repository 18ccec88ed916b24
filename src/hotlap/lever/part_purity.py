"""All the code that one function of the user's may run, and all that it reads: whether it may change between calls.

What cannot be followed or watched counts against it. Nothing is run.
"""

from __future__ import annotations

import dis
import functools
import logging
import random
from collections import deque
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from hotlap.lever.effects import has_effect, unnamed_methods
from hotlap.lever.lazy_opening import Settled, settled, stores_in_place
from hotlap.lever.purity import IN_PLACE_OF, draws_by_name, is_library, is_library_name
from hotlap.lever.users_code import codes_in, is_standard, is_users, names_in
from hotlap.lever.watched_kinds import FLAT, PLAIN, inside, is_alone, is_numbers

__all__ = ["Reading"]

_MOST_SEEN, _DEEP = 2000, 6
_MADE_BY = ("__init__", "__new__", "__post_init__")
_CONTAINERS = (list, tuple, set, frozenset, dict, deque)
_BUILT_IN = ("builtins", "collections")
_MISSING: Any = object()


class _Changing(Exception):
    """Why results may change."""


class Reading:
    """Of a function, a method of ``holder`` where that is not None. ``reason``: why its results may change between
    calls, None where nothing says so; with ``stores_alone``, only for the user's code that stores something."""

    def __init__(self, function: FunctionType, holder: Any, stores_alone: bool = False) -> None:
        self._holder, self._stores_alone = holder, stores_alone
        self._own: dict[str, Any] = getattr(holder, "__dict__", {})
        self._names: set[str] = set()
        self._seen: set[Any] = set()
        self._objects: dict[type, list[Any]] = {}
        """That are held, by class: their methods are followed."""
        self._tests: list[tuple[type, Callable[[Any], Any]]] = []
        """Of the objects of a class: whether one has something to open still."""
        self._modules: list[ModuleType] = []
        self._classes: list[type] = []
        self._globals: dict[tuple[int, str], tuple[dict[str, Any], str]] = {}
        self.reason: str | None = None
        try:
            if holder is not None and (not hasattr(holder, "__dict__") or hasattr(type(holder), "__getattr__")):
                self._refuse("its object's attributes cannot be watched")
            self._follow(function, of=None if holder is None else type(holder))
            self._until_all_is_read()
        except (_Changing, RecursionError) as err:
            self.reason = str(err) or "its parts lie too deep to follow"
        things = {**self._objects, type(holder): [*self._objects.get(type(holder), ()), holder]}
        self._asked = [(test, thing) for kind, test in self._tests for thing in things[kind]]

    def _refuse(self, why: str) -> None:
        if not self._stores_alone:
            raise _Changing(why)

    def opens(self) -> bool:
        """Whether it opens something at its first call, and keeps it."""
        return bool(self._tests)

    def is_open(self) -> bool:
        """Whether all that it opens is open. May raise what the script's own question would."""
        return not any(test(thing) for test, thing in self._asked)

    def values(self) -> list[Any]:
        """What it may read beside its arguments, as it is now."""
        found = [names.get(name) for names, name in self._globals.values()]
        for name in self._sorted if self._holder is not None else ():
            value = self._own.get(name, _MISSING)
            if value is _MISSING:
                value = None
                for kind in self._kinds:
                    if name in kind:
                        value = kind[name]
                        break
            found.append(value)
        return found

    @functools.cached_property
    def _kinds(self) -> list[Any]:
        return [vars(kind) for kind in type(self._holder).__mro__]

    @functools.cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._names)

    def _until_all_is_read(self) -> None:
        before = (-1, -1)
        while before != (now := (len(self._seen), len(self._names))):
            before = now
            for name in list(self._names):
                self._look_up(name)

    def _look_up(self, name: str) -> None:
        """Everything that the name may stand for."""
        if self._holder is not None:
            self._method(self._holder, name)
            if name in self._own:
                self._hold(self._own[name])
        for kind, things in list(self._objects.items()):
            for method in (name, *unnamed_methods(kind)):
                self._method(things[0], method)
        for module in list(self._modules):
            self._global(vars(module), name)
        for kind in list(self._classes):
            for method in (name, *unnamed_methods(kind), *_MADE_BY):
                found = getattr(kind, method, None)
                if isinstance(found, FunctionType):
                    self._follow(found, makes=method in _MADE_BY)

    def _method(self, thing: Any, name: str) -> None:
        if name in _MADE_BY:  # of what is made there (super().__init__()), not of what is held
            return
        for kind in type(thing).__mro__:
            if name in vars(kind):
                found = vars(kind)[name]
                if isinstance(found, functools.cached_property):
                    self._once(thing, name, found)
                    return
                of = type(thing) if isinstance(found, FunctionType | property) else None
                found = getattr(found, "fget", None) or getattr(found, "__func__", None) or found
                if isinstance(found, FunctionType):
                    self._follow(getattr(found, IN_PLACE_OF, found), of=of)
                elif kind is not object and not callable(found) and not hasattr(type(found), "__get__"):
                    self._hold(found)

    def _once(self, thing: Any, name: str, found: Any) -> None:
        """What it gives at its first use is kept from then on."""
        if (type(thing), found) not in self._seen:
            self._seen.add((type(thing), found))
            self._tests.append((type(thing), lambda thing: name not in vars(thing)))

    def _follow(self, function: FunctionType, makes: bool = False, of: type | None = None) -> None:
        """``of``: the class whose method it is."""
        if draws_by_name(function.__name__):  # whatever name it goes by here
            self._refuse(f"it uses {function.__name__}")
        if (function.__code__, of) in self._seen or is_library(function):
            return
        if self._stores_alone and not is_users(function):
            return
        if self._stores_alone and stores_in_place(function):
            raise _Changing(f"{function.__name__} stores state")
        self._seen.add((function.__code__, of))
        own = Settled(function.__code__)
        if of is not None:
            own = settled(function)
            self._tests += [(of, test) for test in own.tests]
        for code in codes_in(own.code):
            for instruction in dis.get_instructions(code):
                stores = instruction.opname in ("STORE_ATTR", "DELETE_ATTR") and not makes
                if stores or instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                    raise _Changing(f"{function.__name__} stores state ({instruction.argval})")
        for name in names_in(own.code):
            if draws_by_name(name) or has_effect(name):
                self._refuse(f"{function.__name__} uses {name}")
            self._names.add(name)
            self._global(function.__globals__, name)
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        for value in [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]:
            self._hold(value)

    def _global(self, names: dict[str, Any], name: str) -> None:
        value = names.get(name, _MISSING)
        if value is not _MISSING and not self._is_code(value):
            self._hold(value)
            self._globals[id(names), name] = names, name

    def _is_code(self, value: Any) -> bool:
        """Whether it is a function, a class or a module: its code is read, where it is none of a library's."""
        if isinstance(value, FunctionType):
            self._follow(getattr(value, IN_PLACE_OF, value))
        elif isinstance(value, type):
            if not _is_installed(value.__module__) and value not in self._classes:
                self._classes.append(value)
                self._seen.add(value)
        elif isinstance(value, ModuleType):
            if not _is_installed(value.__name__) and value not in self._modules:
                self._modules.append(value)
                self._seen.add(value.__name__)
        else:
            return False
        return True

    def _hold(self, value: Any) -> None:
        """A value that is read: it must be one that can be watched."""
        kind: Any = type(value)
        if is_alone(value) or self._is_code(value):
            return
        if is_numbers(value):
            if getattr(getattr(value, "dtype", None), "hasobject", False):
                self._hold(value.ravel().tolist())
        elif isinstance(value, MethodType):
            self._hold(value.__func__)
            self._hold(value.__self__)
        elif isinstance(value, BuiltinFunctionType):  # a library's, or a method of an object: of an iterator, a file
            if draws_by_name(value.__name__):
                self._refuse(f"it uses {value.__name__}")
            self._hold(value.__self__)
        elif isinstance(value, functools.partial):
            self._hold([value.func, *value.args, *value.keywords.values()])
        elif isinstance(value, _CONTAINERS) and (kind.__module__ in _BUILT_IN or hasattr(kind, "_fields")):
            self._hold_all(value)
        else:
            self._hold_object(value, kind)

    def _hold_all(self, value: Any) -> None:
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        found = inside(value)
        for _ in range(_DEEP):  # lists of tuples, or of dictionaries: there may be a million
            rest = [part for part in found if type(part) not in PLAIN]
            if not {type(part) for part in rest} <= FLAT:
                for part in rest:
                    self._hold(part)
                return
            found = [inner for part in rest for inner in inside(part)]

    def _hold_object(self, value: Any, kind: Any) -> None:
        unseen = isinstance(value, random.Random | logging.Logger | dict | list | tuple | set | frozenset | deque)
        known = is_standard(kind.__module__) or draws_by_name(kind.__name__)
        if unseen or known or not hasattr(value, "__dict__"):
            if kind is functools._lru_cache_wrapper:
                raise _Changing(f"{value.__name__} keeps results")
            self._refuse(f"it uses a {kind.__name__}")
            return
        if id(value) in self._seen or value is self._holder:
            return
        self._objects.setdefault(kind, []).append(value)
        self._seen.add(id(value))
        if len(self._seen) > _MOST_SEEN:
            raise _Changing("it reads more than can be followed")
        for held in list(vars(value).values()):
            self._hold(held)


def _is_installed(module: str) -> bool:
    """Of the standard library, or of the libraries whose functions are known to compute alone."""
    return is_standard(module) or is_library_name(module)
