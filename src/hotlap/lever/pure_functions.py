"""The user's functions that give the same result for the same plain arguments, among those that some code reaches."""

from __future__ import annotations

import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from inspect import getattr_static
from types import FunctionType, MethodType, ModuleType
from typing import Any

from hotlap.lever.pure_code import READING, Body, body_of
from hotlap.lever.users_code import ALONE, ModuleNames, is_users, names_in

__all__ = ["PureFunction", "pure_functions"]

_DEPTH = 6
_LOOKED_AT = 64
"""Elements of a container that are looked at."""
_MODULES = {
    "math": None, "re": None, "string": None, "unicodedata": None, "bisect": None, "zlib": None, "binascii": None,
    "base64": None, "html": None, "json": {"loads", "dumps"}, "numpy": {"array", "zeros", "ones", "full", "arange",
    "concatenate", "stack", "float32", "float64", "int32", "int64", "uint8", "int16", "pi"},
    "torch": {"tensor", "zeros", "ones", "full", "arange", "cat", "stack", "float32", "int64", "long", "float"},
}  # fmt: skip
"""Modules whose functions only compute; of the large ones those that are known to."""
_IMMUTABLE = frozenset((str, bytes, int, float, bool, complex, type(None), range))
_CONTAINERS = (list, tuple, dict, set, frozenset, Counter, OrderedDict, defaultdict, deque)
_PLAIN_ACCESS = getattr_static(object, "__getattribute__")


@dataclass
class PureFunction:
    """A function in its place."""

    owner: Any
    """The class or module that has it as an attribute."""
    function: FunctionType
    bound: bool
    """Its first argument is its object."""
    new_result: bool
    attributes: set[str] = field(default_factory=set)
    """Of its object, that the result depends on."""
    names: list[tuple[Mapping[str, Any], str]] = field(default_factory=list)
    """(names of a module or class, one of them), that the result depends on."""


def pure_functions(*roots: Any) -> list[PureFunction]:
    """Those that ``roots`` (objects with ``__getitem__`` or ``__call__``, functions) reach, without these."""
    found: dict[int, PureFunction] = {}
    for owner, holder, function in _reached(roots):
        pure = PureFunction(owner, function, holder is not None, True)
        if id(function) not in found and _is_pure(pure, function, holder, set()):
            found[id(function)] = pure
    return list(found.values())


def _reached(roots: tuple[Any, ...]) -> Iterator[tuple[Any, Any, FunctionType]]:
    """(class or module, its object, function) of the user's own that the roots' code names, itself looked into."""
    seen: set[int] = set()
    left: list[tuple[Any, FunctionType]] = []
    for root in roots:
        for value in [root, *getattr(root, "__dict__", {}).values()]:  # ours stand before the user's own
            if is_users(value):
                left.append((None, value))
            elif isinstance(value, MethodType) and is_users(value.__func__):
                left.append((value.__self__, value.__func__))
            for name in ("__getitem__", "__getitems__", "__iter__", "__call__"):
                method = getattr_static(type(value), name, None)
                if is_users(method):
                    left.append((value, method))
    while left:
        holder, function = left.pop()
        if id(function.__code__) in seen:
            continue
        seen.add(id(function.__code__))
        names, known = set(names_in(function.__code__)), function.__globals__
        for name in names & known.keys():
            # somebody who holds the function itself may pickle it, which a stand-in under its name would forbid
            if is_users(known[name]) and sys.getrefcount(known[name]) <= ALONE and known[name].__globals__ is known:
                yield ModuleNames(known), None, known[name]
                left.append((None, known[name]))
        held = {**known, **getattr(holder, "__dict__", {})}
        for thing in [holder, *(held[name] for name in names if name in held)]:
            for kind in type(thing).__mro__:
                for name in names & vars(kind).keys():
                    if is_users(vars(kind)[name]):
                        yield kind, thing, vars(kind)[name]
                        left.append((thing, vars(kind)[name]))


def _is_pure(pure: PureFunction, function: FunctionType, holder: Any, seen: set[int]) -> bool:
    """Follow what it calls; notes what it reads."""
    if id(function) in seen:
        return True
    seen.add(id(function))
    body = None if function.__closure__ or len(seen) > _DEPTH else body_of(function, holder is not None)
    if (
        body is None
        or not is_users(function)
        or getattr_static(type(holder), "__getattribute__", None) is not _PLAIN_ACCESS
    ):
        return False
    if holder is not None and not (type(holder).__dictoffset__ and type(holder).__weakrefoffset__):
        return False  # its attributes cannot be watched, or only by keeping it alive
    if len(seen) == 1:
        pure.new_result = body.new_result
    return _own_names(pure, body, holder, seen) and _module_names(pure, body, function.__globals__, seen)


def _own_names(pure: PureFunction, body: Body, holder: Any, seen: set[int]) -> bool:
    for name in body.methods:
        method = getattr_static(type(holder), name, None)
        if not isinstance(method, FunctionType) or not _is_pure(pure, method, holder, seen):
            return False
    kinds = [vars(kind) for kind in type(holder).__mro__]
    for name in body.attributes:
        place = next((d for d in [getattr(holder, "__dict__", {}), *kinds] if name in d), None)
        if place is None or not _plain(place[name]):
            return False
        pure.attributes.add(name)
        pure.names += [(place, name)] if place is not vars(holder) else []
    return True


def _module_names(pure: PureFunction, body: Body, names: dict[str, Any], seen: set[int]) -> bool:
    for name in body.names:
        value = names.get(name, names)
        if isinstance(value, FunctionType):
            if not _is_pure(pure, value, None, seen):
                return False
        elif not _plain(value):
            return False
        pure.names.append((names, name))
    for base, name in body.members:
        module = names.get(base)
        if isinstance(module, ModuleType):
            known = _MODULES.get(module.__name__, set())
            if known is not None and name not in known:
                return False
            continue
        if base not in names or not _plain(module) or name not in READING:
            return False
        pure.names.append((names, base))
    return True


def _plain(value: Any, depth: int = 0) -> bool:
    """Numbers, text, patterns, arrays, and containers of them."""
    kind = type(value)
    if kind in _IMMUTABLE or isinstance(value, re.Pattern):
        return True
    if kind.__module__ in ("numpy", "torch") and kind.__name__ in ("ndarray", "Tensor"):
        return True
    if kind not in _CONTAINERS or depth > 3:
        return False
    items = list(value.items()) if isinstance(value, dict) else [(None, v) for v in value]
    return all(_plain(k, depth + 1) and _plain(v, depth + 1) for k, v in items[:_LOOKED_AT])
