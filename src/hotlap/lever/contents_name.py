"""What :class:`Contents` holds, as a name that every process gives it which holds the same, and no other."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import types
from pathlib import PurePath
from typing import Any

from hotlap.lever.contents import Contents, is_read_whole
from hotlap.lever.open_files import descriptor_name, file_name, is_open_file
from hotlap.lever.users_code import is_standard

__all__ = ["name_of"]

_PLAIN_SIZE = object.__basicsize__ + 2 * 8
"""Bytes of an object with attributes and weak references."""
_HIDING = (dict, list, tuple, set, frozenset, str, bytes, bytearray, int, float, complex)
"""What a class that comes from one of these holds besides its attributes."""


def name_of(contents: Contents, inherited: Contents | None) -> str | None:
    """None where only this process can tell. ``inherited``: what was there before any was forked, and is at the
    same addresses in all."""
    marks = [] if inherited is None else inherited.marks
    facts = {fact for held, fact in marks if held is None}
    common = {id(held) for held, _ in marks if held is not None}
    met: dict[int, int] = {}
    words: list[Any] = []
    for held, fact in contents.marks:
        if held is None:
            words.append(fact if fact in facts else _plain(fact))
        elif id(held) in met:
            words.append(("again", met[id(held)]))
        else:
            met[id(held)] = len(words)
            word = ("inherited", id(held)) if id(held) in common else _word(held)
            if word is None:
                return None
            words.append((word, fact))
    return hashlib.blake2b(repr(words).encode(), digest_size=16).hexdigest()


def _plain(fact: Any) -> Any:
    """A number that this process has stored, and that may mean something here alone, as what it means."""
    if type(fact) is tuple and len(fact) == 2 and fact[0] is int:
        number = fact[1]
        return "process" if number == os.getpid() else descriptor_name(number) or fact
    return fact


def _word(held: Any) -> Any:
    """Of an object that this process has made."""
    kind = type(held)
    if is_open_file(held):
        return file_name(held)
    if isinstance(held, type | types.ModuleType):
        return getattr(held, "__module__", ""), getattr(held, "__qualname__", held.__name__)
    if isinstance(held, PurePath):
        return kind.__name__, str(held)
    if isinstance(held, re.Pattern):
        return held.pattern, held.flags
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    arrays = tuple(k for k in (getattr(numpy, "ndarray", None), getattr(torch, "Tensor", None)) if k is not None)
    if isinstance(held, arrays):
        return "array" if is_read_whole(held) else None
    # of a Python class nothing is hidden beside its attributes; those are marks of their own
    is_plain = hasattr(held, "__dict__") and kind.__basicsize__ <= _PLAIN_SIZE and not isinstance(held, _HIDING)
    return (kind.__module__, kind.__qualname__) if is_plain and not is_standard(kind.__module__) else None
