"""All the code that one function of the user's may run, and all that it reads: whether it may change between calls.

What cannot be followed or watched counts against it. Nothing is run.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from hotlap.lever.class_parts import function_of, is_read_as_it_is
from hotlap.lever.effects import has_effect, unnamed_methods
from hotlap.lever.held_values import Changing, HeldValues
from hotlap.lever.lazy_opening import Settled, settled, stores_in_place
from hotlap.lever.purity import draws_by_name, is_known_name, is_library, own_function
from hotlap.lever.users_code import (
    codes_in,
    global_names_in,
    imports_in,
    is_users,
    is_users_module,
    is_users_unread,
    names_in,
)

__all__ = ["Reading"]

_MADE_BY = ("__init__", "__new__", "__post_init__")
_MISSING: Any = object()


class Reading(HeldValues):
    """Of a function, a method of ``holder`` where that is not None. ``reason``: why its results may change between
    calls, None where nothing says so; with ``stores_alone``, only for the user's code that stores something."""

    def __init__(self, function: FunctionType | None, holder: Any, stores_alone: bool = False) -> None:
        super().__init__(holder)
        self._stores_alone = stores_alone
        self._own: dict[str, Any] = getattr(holder, "__dict__", {})
        self._names: set[str] = set()
        self._tests: list[tuple[type, Callable[[Any], Any]]] = []
        """Of the objects of a class: whether one has something to open still."""
        self._modules: list[ModuleType] = []
        self._classes: list[type] = []
        self._globals: dict[tuple[int, str], tuple[Mapping[str, Any], str]] = {}
        self.reason: str | None = None
        try:
            self._begin(function)
            self._until_all_is_read()
        except Changing as err:
            self.reason = str(err)
        except RecursionError:
            self.reason = "its parts lie too deep to follow"
        except Exception as err:  # of an object that cannot be looked into
            self.reason = f"it reads what cannot be looked into ({type(err).__name__})"
        self._met.clear()
        things = {**self._objects, type(holder): [*self._objects.get(type(holder), ()), holder]}
        self._asked = [(test, thing) for kind, test in self._tests for thing in things[kind]]

    def _begin(self, function: FunctionType | None) -> None:
        holder = self._holder
        if holder is not None and (not hasattr(holder, "__dict__") or hasattr(type(holder), "__getattr__")):
            self._refuse("its object's attributes cannot be watched")
        if function is not None:
            self._follow(function, of=None if holder is None else type(holder))

    def _refuse(self, why: str) -> None:
        if not self._stores_alone:
            raise Changing(why)

    def _refuse_name(self, name: str, function: FunctionType) -> None:
        if draws_by_name(name) or has_effect(name):
            self._refuse(f"{function.__name__} uses {name}")

    def _refuse_store(self, name: str, function: FunctionType) -> None:
        raise Changing(f"{function.__name__} stores state ({name})")

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
        before = (-1, -1, -1)
        while before != (now := (len(self._seen), len(self._met), len(self._names))):
            before = now
            for kind, things in list(self._objects.items()):
                for name in self._unnamed(kind):
                    self._method(things[0], name)
            for kind in list(self._classes):
                for name in (*unnamed_methods(kind), *_MADE_BY):
                    self._of_class(kind, name)
            for name in list(self._names):
                self._look_up(name)

    def _look_up(self, name: str) -> None:
        """Everything that the name may stand for."""
        if self._holder is not None:
            self._method(self._holder, name)
            if name in self._own:
                self._hold(self._own[name])
        for things in list(self._objects.values()):
            self._method(things[0], name)
        for module in list(self._modules):
            self._global(vars(module), name)
        for kind in list(self._classes):
            self._of_class(kind, name)

    def _method(self, thing: Any, name: str) -> None:
        if name in _MADE_BY:  # of what is made there (super().__init__()), not of what is held
            return
        kind = type(thing)
        for known in kind.__mro__:
            found = vars(known).get(name, _MISSING)
            if isinstance(found, functools.cached_property):
                self._once(thing, name, found)
                return
            self._found(known, name, of=kind if isinstance(found, FunctionType | property) else None)

    def _of_class(self, kind: type, name: str) -> None:
        """Of a class of the script's, of which the code may make objects."""
        for known in kind.__mro__:
            self._found(known, name, makes=name in _MADE_BY)

    def _found(self, kind: type, name: str, makes: bool = False, of: type | None = None) -> None:
        found = own_function(function_of(vars(kind).get(name, _MISSING)))
        if isinstance(found, FunctionType):
            self._follow(found, makes, of)
        elif found is not _MISSING and not is_known_name(kind.__module__) and is_read_as_it_is(found):
            self._hold_of_class(kind, name, found)

    def _hold_of_class(self, kind: type, name: str, value: Any) -> None:
        self._hold(value)

    def _once(self, thing: Any, name: str, found: Any) -> None:
        """What it gives at its first use is kept from then on."""
        if (type(thing), found) not in self._seen:
            self._seen.add((type(thing), found))
            self._tests.append((type(thing), lambda thing: name not in vars(thing)))

    def _follow(self, function: FunctionType, makes: bool = False, of: type | None = None) -> None:
        """``of``: the class whose method it is."""
        if draws_by_name(function.__name__):  # whatever name it goes by here
            self._refuse(f"it uses {function.__name__}")
        if (function.__code__, of) in self._seen or not self._is_followed(function):
            return
        if self._stores_alone and stores_in_place(function):
            raise Changing(f"{function.__name__} stores state")
        self._seen.add((function.__code__, of))
        own = Settled(function.__code__)
        if of is not None:
            own = settled(function)
            self._tests += [(of, test) for test in own.tests]
        for code in codes_in(own.code):
            for instruction in dis.get_instructions(code):
                stores = instruction.opname in ("STORE_ATTR", "DELETE_ATTR") and not makes
                if stores or instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                    self._refuse_store(instruction.argval, function)
        for name in names_in(own.code):
            self._refuse_name(name, function)
            self._names.add(name)
        for name in sorted(global_names_in(own.code)):
            self._global(function.__globals__, name)
        for name in imports_in(function, own.code):
            self._import(name, function)
        for value in [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]:
            self._hold(value)
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty one
                self._hold(cell.cell_contents)

    def _is_followed(self, function: FunctionType) -> bool:
        return is_users(function) if self._stores_alone else not is_library(function)

    def _is_read(self, name: str, module: ModuleType | None = None) -> bool:
        """Whether the functions and classes of such a module are followed by their names."""
        return not is_known_name(name)

    def _import(self, name: str, function: FunctionType) -> None:
        """A module of the script's that the function itself imports, by its full name."""
        if is_users_unread(name):
            self._refuse(f"{function.__name__} imports {name}")
        for module in (sys.modules.get(name), sys.modules.get(name.partition(".")[0])):
            if module is not None and is_users_module(name, module):
                self._is_code(module)

    def _global(self, names: Mapping[str, Any], name: str) -> None:
        value = names.get(name, _MISSING)
        if value is not _MISSING and not self._is_code(value):
            self._hold(value)
            self._globals[id(names), name] = names, name

    def _is_code(self, value: Any) -> bool:
        """Whether it is a function, a class or a module: its code is read, where it is none of a library's."""
        if isinstance(value, FunctionType):
            function = own_function(value)
            if isinstance(function, FunctionType):
                self._follow(function)
        elif isinstance(value, type):
            module = str(value.__module__)
            self._refuse_module(module)
            if value not in self._seen and self._is_read(module):
                self._classes.append(value)
                self._seen.add(value)
        elif isinstance(value, ModuleType):
            self._refuse_module(value.__name__)
            if value.__name__ not in self._seen and self._is_read(value.__name__, value):
                self._modules.append(value)
                self._seen.add(value.__name__)
        else:
            return False
        return True

    def _refuse_module(self, name: str) -> None:
        """One of a library that draws (numpy.random), under whatever name."""
        drawing = [part for part in name.split(".") if draws_by_name(part)]
        if drawing and is_known_name(name):
            self._refuse(f"it uses {drawing[0]}")
