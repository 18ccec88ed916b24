"""Values that a function may read whatever they hold: they can be compared later, or never change."""

from __future__ import annotations

import enum
import re
import struct
from pathlib import PurePath
from typing import Any

from hotlap.lever.open_files import is_open_file

__all__ = ["FLAT", "PLAIN", "inside", "is_alone", "is_numbers"]

PLAIN = frozenset((int, float, complex, str, bytes, bool, type(None), range, slice, type(...)))
FLAT = frozenset((list, tuple, dict))
"""Containers of which there may be a million in one."""
_LOCKS = (("_thread", "lock"), ("_thread", "RLock"))
_NUMBERS = (("numpy", "ndarray"), ("numpy", "dtype"), ("torch", "Tensor"), ("torch", "dtype"), ("torch", "device"))


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
