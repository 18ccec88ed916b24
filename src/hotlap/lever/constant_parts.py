"""The parts of a sample that never change: functions that a data set's code calls, which know nothing random.

Where a photo is read and resized by one method and mirrored at random after that, the first is such a part.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from hotlap.lever.purity import IN_PLACE_OF, impure_part_reason
from hotlap.lever.users_code import ALONE, ModuleNames, is_users, names_in

__all__ = ["Part", "attributes_read", "constant_parts"]

_DRAWN_BY = ("__getitem__", "__getitems__")
_UNNAMED = ("__call__", "__getitem__")
"""Methods that code uses without naming them: ``self.load(i)`` may be an object's, ``self.base[i]`` is."""


_UNSEEN = frozenset(("getattr", "vars", "globals", "locals", "eval", "exec", "__dict__"))
"""What reads attributes that no name tells."""


@dataclass(frozen=True)
class Part:
    """A function in its place."""

    owner: Any
    """The class or module that has it as an attribute."""
    function: FunctionType
    bound: bool
    """Its first argument is its object."""


def constant_parts(dataset: Any) -> list[Part]:
    """The outermost of them that drawing from ``dataset`` reaches: what they call themselves is not among them."""
    found: list[Part] = []
    seen: set[int] = set()
    left: list[tuple[Any, FunctionType]] = []
    for name in _DRAWN_BY:
        method = getattr(type(dataset), name, None)
        method = getattr(method, IN_PLACE_OF, method)
        if is_users(method):
            left.append((dataset, method))
    while left:
        holder, function = left.pop()
        if id(function.__code__) in seen:
            continue
        seen.add(id(function.__code__))
        for thing, part in _called(holder, function):
            if _is_constant(part.function, thing):
                found += [] if part in found else [part]
            else:
                left.append((thing, part.function))
    return found


def _called(holder: Any, function: FunctionType) -> Iterator[tuple[Any, Part]]:
    """Functions of the user's own that the code names, each with its object."""
    names, known = set(names_in(function.__code__)), function.__globals__
    for name in sorted(names & known.keys()):
        if hasattr(known[name], IN_PLACE_OF):
            yield None, Part(ModuleNames(known), getattr(known[name], IN_PLACE_OF), False)
        # somebody who holds the function itself may pickle it, which a stand-in under its name would forbid
        elif is_users(known[name]) and sys.getrefcount(known[name]) <= ALONE and known[name].__globals__ is known:
            yield None, Part(ModuleNames(known), known[name], False)
    held = {**known, **getattr(holder, "__dict__", {})}
    for thing in [holder, *(held[name] for name in sorted(names) if name in held)]:
        wanted = names if thing is holder else names.union(_UNNAMED)
        for kind in type(thing).__mro__:
            for name in sorted(wanted & vars(kind).keys()):
                method = getattr(vars(kind)[name], IN_PLACE_OF, vars(kind)[name])
                if is_users(method):
                    yield thing, Part(kind, method, True)
            wanted = wanted if "super" in names else wanted - vars(kind).keys()


def _is_constant(function: FunctionType, holder: Any) -> bool:
    if holder is not None and not hasattr(holder, "__dict__"):
        return False  # what it holds cannot be watched
    names = _names_reached(function, holder)
    return not names & _UNSEEN and impure_part_reason(function, holder, attributes_read(function, holder)) is None


def attributes_read(function: FunctionType, holder: Any) -> list[str]:
    """Names of the holder's own attributes that the function, or a method of the holder that it calls, may read."""
    return sorted(_names_reached(function, holder) & getattr(holder, "__dict__", {}).keys())


def _names_reached(function: FunctionType, holder: Any) -> set[str]:
    """What the code of the function, and of the holder's methods that it calls, names."""
    found: set[str] = set()
    left = [function]
    while left:
        for name in set(names_in(left.pop().__code__)) - found:
            found.add(name)
            method = getattr(type(holder), name, None)
            method = method.fget if isinstance(method, property) else getattr(method, IN_PLACE_OF, method)
            if isinstance(method, FunctionType):
                left.append(method)
    return found
