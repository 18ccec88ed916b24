"""The parts of a sample that never change: functions that a data set's code calls, which know nothing random.

Where a photo is read and resized by one method and mirrored at random after that, the first is such a part.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from hotlap.lever.part_purity import Reading
from hotlap.lever.purity import IN_PLACE_OF
from hotlap.lever.users_code import ALONE, ModuleNames, is_users, names_in

__all__ = ["Part", "constant_parts"]

_DRAWN_BY = ("__getitem__", "__getitems__")
_UNNAMED = ("__call__", "__getitem__")
"""Methods that code uses without naming them: ``self.load(i)`` may be an object's, ``self.base[i]`` is."""


@dataclass(frozen=True)
class Part:
    """A function in its place."""

    owner: Any
    """The class or module that has it as the attribute ``name``."""
    name: str
    function: FunctionType
    holder: Any
    """The object that its first argument is; None for a function of a module."""
    reading: Reading


def constant_parts(dataset: Any) -> list[Part]:
    """The outermost of them that drawing from ``dataset`` reaches: what they call themselves is not among them."""
    found: list[Part] = []
    seen: set[Any] = set()
    left: list[tuple[Any, FunctionType]] = []
    for name in _DRAWN_BY:
        owner = next((kind for kind in type(dataset).__mro__ if name in vars(kind)), None)
        method = vars(owner)[name] if owner is not None else None
        method = getattr(method, IN_PLACE_OF, method)
        if not is_users(method):
            continue
        reading = Reading(method, dataset)
        whole = name == "__getitem__" and reading.reason is None
        if whole and reading.opens():  # a file, in each worker: here no sample may be drawn to try
            found.append(Part(owner, name, method, dataset, reading))
        else:
            left.append((dataset, method))
    while left:
        holder, function = left.pop()
        for owner, name, called, thing in _called(holder, function):
            if (id(thing), called.__code__) in seen:
                continue
            seen.add((id(thing), called.__code__))
            reading = Reading(called, thing)
            if reading.reason is None:
                found.append(Part(owner, name, called, thing, reading))
            else:
                left.append((thing, called))
    return found


def _called(holder: Any, function: FunctionType) -> Iterator[tuple[Any, str, FunctionType, Any]]:
    """(class or module, name, function, its object): functions of the user's own that the code names."""
    names, known = set(names_in(function.__code__)), function.__globals__
    for name in sorted(names & known.keys()):
        if isinstance(known[name], FunctionType) and hasattr(known[name], IN_PLACE_OF):
            yield ModuleNames(known), name, getattr(known[name], IN_PLACE_OF), None
        # somebody who holds the function itself may pickle it, which a stand-in under its name would forbid
        elif is_users(known[name]) and sys.getrefcount(known[name]) <= ALONE and known[name].__globals__ is known:
            yield ModuleNames(known), name, known[name], None
    held = {**known, **getattr(holder, "__dict__", {})}
    for thing in [holder, *(held[name] for name in sorted(names) if name in held)]:
        wanted = names if thing is holder else names.union(_UNNAMED)
        for kind in type(thing).__mro__:
            for name in sorted(wanted & vars(kind).keys()):
                method = vars(kind)[name]
                method = getattr(method, IN_PLACE_OF, method) if isinstance(method, FunctionType) else None
                if is_users(method):
                    yield kind, name, method, thing
            wanted = wanted if "super" in names else wanted - vars(kind).keys()
