"""Values that a function may read whatever they hold: they can be compared later, or never change."""

from __future__ import annotations

import enum
import logging
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import PurePath
from types import MemberDescriptorType
from typing import Any

from hotlap.lever.open_files import is_open_file
from hotlap.lever.users_code import is_users_module

__all__ = [
    "FLAT",
    "PLAIN",
    "attributes_of",
    "in_slots",
    "inside",
    "is_alone",
    "is_numbers",
    "is_plain_object",
    "is_settings",
    "never_changes",
]

PLAIN = frozenset((int, float, complex, str, bytes, bool, type(None), range, slice, type(...)))
FLAT = frozenset((list, tuple, dict))
"""Containers of which there may be a million in one."""
_LOCKS = (("_thread", "lock"), ("_thread", "RLock"))
_NUMBERS = (("numpy", "ndarray"), ("numpy", "dtype"), ("torch", "Tensor"), ("torch", "dtype"), ("torch", "device"))
_SETTINGS = frozenset((
    ("argparse", "Namespace"), ("types", "SimpleNamespace"), ("collections", "UserDict"), ("collections", "UserList"),
    ("collections", "ChainMap"), ("configparser", "ConfigParser"), ("configparser", "RawConfigParser"),
))  # fmt: skip
"""Classes of the standard library whose objects are what their attributes are, which scripts set."""
_VALUES = ("datetime", "decimal", "fractions", "uuid")
"""Modules of the standard library whose objects never change."""
_OF_ARROW = frozenset(("Table", "RecordBatch", "Schema", "Field", "DataType", "Array", "ChunkedArray"))
"""Classes of pyarrow whose objects never change."""
_PLAIN_SIZE = object.__basicsize__ + 2 * 8
"""Bytes of an object with attributes and weak references."""


def is_settings(kind: type) -> bool:
    """Whether objects of a class of the standard library are what their attributes are."""
    return (kind.__module__, kind.__name__) in _SETTINGS


def is_alone(value: Any) -> bool:
    """Whether it holds nothing else of the script's. A lock counts: to take it and give it back changes nothing."""
    kind = type(value)
    known = kind in PLAIN or isinstance(value, PurePath | re.Pattern | struct.Struct | enum.Enum)
    return known or (kind.__module__, kind.__name__) in _LOCKS or is_open_file(value)


def is_numbers(value: Any) -> bool:
    """Whether it is an array, a tensor, or what kind of numbers they hold, on which device."""
    kind = type(value)
    return (kind.__module__.partition(".")[0], kind.__name__) in _NUMBERS


def inside(container: Any) -> list[Any]:
    """All that it holds, keys too."""
    return [*container.keys(), *container.values()] if isinstance(container, dict) else list(container)


def attributes_of(value: Any) -> dict[str, Any]:
    """Its own ``__dict__``, empty where it has none: a ``__getattr__`` of the script's is not asked for it."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return own if isinstance(own, dict) else {}


def in_slots(value: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of the attributes that it has in places of their own. One that is not set is absent: a
    ``__getattr__`` of the script's, which may open a file, is not asked for it."""
    for known, name in _slots_of(type(value)):
        place = vars(known).get(name)
        if isinstance(place, MemberDescriptorType):
            try:
                held = place.__get__(value)
            except AttributeError:
                continue
            yield name, held


def _slots_of(kind: type) -> Iterator[tuple[type, str]]:
    """Names of the attributes for which a class, or one that it comes from, has a place of its own; and which."""
    for known in kind.__mro__:
        slots = vars(known).get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if not name.startswith("__"):
                yield known, name
            elif not name.endswith("__"):
                yield known, f"_{known.__name__.lstrip('_')}{name}"


def never_changes(value: Any, kind: type) -> bool:
    """Of what is no container: whether nothing about it that a sample may depend on can change in place."""
    numpy = sys.modules.get("numpy")
    fixed = (logging.Logger, str, bytes, int, float, complex)
    of_numpy = numpy is not None and isinstance(value, numpy.generic)
    is_value = is_alone(value) or is_numbers(value) or of_numpy or isinstance(value, fixed)
    return is_value or kind is object or kind.__module__ in _VALUES or _is_of_arrow(kind) or _is_a_modules(value)


def _is_of_arrow(kind: type) -> bool:
    return any(known.__module__ == "pyarrow.lib" and known.__name__ in _OF_ARROW for known in kind.__mro__)


def _is_a_modules(value: Any) -> bool:
    """A function that is an object, which an installed module has under its name."""
    if not callable(value):
        return False
    try:
        module, name = (str(object.__getattribute__(value, part)) for part in ("__module__", "__name__"))
        return not is_users_module(module) and getattr(sys.modules[module], name) is value
    except Exception:  # it has no name, or answers to any in a way of its own
        return False


def is_plain_object(value: Any, kind: type) -> bool:
    """Whether an object holds nothing beside its attributes."""
    slots = list(_slots_of(kind))
    return (kind.__dictoffset__ != 0 or bool(slots)) and kind.__basicsize__ <= _PLAIN_SIZE + 8 * len(slots)
