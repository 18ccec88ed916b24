"""Whether a dataset's code may give another sample for the same index: read from its code, without running it."""

from __future__ import annotations

import dis
import functools
import pathlib
import random
import re
import types
from collections import deque
from collections.abc import Iterable
from typing import Any

from hotlap.lever.users_code import codes_in
from hotlap.lever.watched_kinds import FLAT, inside

__all__ = ["IN_PLACE_OF", "draws_by_name", "impure_reason", "is_library", "is_library_name"]

IN_PLACE_OF = "_hotlap_in_place_of"
"""Attribute of a function of ours: the script's own, which is the one to read."""

_SUSPECT = re.compile(
    r"(?i)^_*(rand.*|.*_rand|.*random.*|.*augment.*|.*shuffle.*|.*jitter.*|.*noise.*|.*dropout.*|.*perm(utation)?|choices?|"
    r"uniform|normal|bernoulli|multinomial|poisson|.*generator|default_rng|.*rng|seed|manual_seed|urandom|token_bytes|"
    r"uuid\d?|time|time_ns|perf_counter|monotonic|now|today|.*epoch.*|global_step)$"
)
_SAYS = frozenset(("print", "write", "warn", "warning", "logger", "logging", "stdout", "stderr"))
"""What a sample says when it is drawn, a kept one would not."""
_LIBRARIES = (
    "torch.",
    "numpy.",
    "PIL.",
    "scipy.",
    "cv2.",
    "soundfile.",
    "h5py.",
    "lmdb.",
    "pandas.",
    "os.",
    "posixpath.",
    "pathlib.",
    "json.",
    "builtins.",
)
_DEPTH = 6
_DEEP = 40
"""Objects in objects; each is looked at once."""
_CALLED = ("__call__", "forward", "__getitem__", "__getitems__")
_PLAIN = frozenset((int, float, str, bool, bytes, type(None), pathlib.PosixPath, pathlib.WindowsPath))


def impure_reason(dataset: object) -> str | None:
    """Why samples of ``dataset`` may change between draws, or None when nothing in its code says so.

    Looked at: the names in ``__getitem__`` and in every function and callable object of the user's that it can reach,
    generators kept in attributes or globals, and writes to ``self``. Unknown code counts as a reason.
    """
    if hasattr(dataset, "set_epoch"):
        return "it has set_epoch, so samples may differ by epoch"
    method = _own(getattr(type(dataset), "__getitem__", None))
    if not isinstance(method, types.FunctionType):
        return "its __getitem__ is not Python code"
    try:
        return _method(method, dataset, set(), 0) or _state(dataset, set(), 0)
    except RecursionError:
        return "its parts lie too deep to follow"


def _own(function: Any) -> Any:
    return getattr(function, IN_PLACE_OF, function)


def _is_generator(value: Any) -> bool:
    kind = type(value)
    return isinstance(value, random.Random) or kind.__name__ in ("Generator", "RandomState", "SystemRandom")


def draws_by_name(name: str) -> bool:
    """Whether what is called so may draw at random, or tells the time."""
    return _SUSPECT.match(name) is not None


def is_library_name(module: str) -> bool:
    """Whether the functions of such a module only compute what they are asked for."""
    return (module + ".").startswith(_LIBRARIES)


def is_library(function: Any) -> bool:
    """Whether a function need not be followed: it only computes, or its name says what it does."""
    name = getattr(function, "__module__", None) or ""
    return is_library_name(name) and "transforms" not in name


def _method(function: types.FunctionType, owner: Any, seen: set[Any], depth: int) -> str | None:
    key = id(function), type(owner)  # what self.something is there is the class' affair
    if key in seen or is_library(function):
        return None
    seen.add(key)
    if depth > _DEPTH:
        return "its code is too deep to follow"
    for code in codes_in(function.__code__):
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("STORE_ATTR", "STORE_GLOBAL", "DELETE_ATTR"):
                return f"{function.__name__} stores state ({instruction.argval})"
        for name in code.co_names:
            reason = _name(name, function, owner, seen, depth)
            if reason:
                return reason
    for cell in function.__closure__ or ():
        reason = _value(cell.cell_contents, seen, depth + 1)
        if reason:
            return reason
    return None


def _name(name: str, function: types.FunctionType, owner: Any, seen: set[Any], depth: int) -> str | None:
    if _SUSPECT.match(name):
        return f"{function.__name__} uses {name}"
    if name in _SAYS:
        return f"{function.__name__} says something ({name})"
    reached = getattr(type(owner), name, None) if owner is not None else None
    if isinstance(reached, property):
        reached = reached.fget
    if isinstance(reached, types.FunctionType):
        return _method(reached, owner, seen, depth + 1)
    return _value(function.__globals__[name], seen, depth + 1) if name in function.__globals__ else None


def _value(value: Any, seen: set[Any], depth: int) -> str | None:
    if type(value) in _PLAIN:
        return None
    if _is_generator(value):
        return f"it uses a private {type(value).__name__}"
    if isinstance(value, types.FunctionType):
        return _method(value, None, seen, depth)
    if isinstance(value, functools.partial):
        return _parts(value, [value.func, value.args, value.keywords], seen, depth)
    if isinstance(value, list | tuple | set | frozenset | deque):
        return _parts(value, value, seen, depth)
    if isinstance(value, dict):
        return _parts(value, value.values(), seen, depth)
    if type(value).__module__ == "numpy":
        objects = getattr(getattr(value, "dtype", None), "hasobject", False)
        return _parts(value, value.ravel().tolist(), seen, depth) if objects else None
    if isinstance(value, types.MethodType):
        called, owner = value.__func__, value.__self__
        reason = _method(called, owner, seen, depth) if isinstance(called, types.FunctionType) else None
        return reason or _value(owner, seen, depth)
    if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
        return None
    return _state(value, seen, depth)


def _parts(whole: Any, parts: Iterable[Any], seen: set[Any], depth: int) -> str | None:
    """Of everything that a container holds."""
    if id(whole) in seen:
        return None
    seen.add(id(whole))
    found = list(parts)
    for _ in range(_DEPTH):  # lists of tuples, or of dictionaries, in a loop: there may be a million
        if not {type(part) for part in found} - _PLAIN - FLAT:
            found = [p for part in found if type(part) in FLAT for p in inside(part)]
    for part in found:
        reason = _value(part, seen, depth) if type(part) not in _PLAIN else None
        if reason:
            return reason
    return None


def _state(value: Any, seen: set[Any], depth: int) -> str | None:
    """Attributes of an object of the user's or of a library's, and what calling or reading it does."""
    if id(value) in seen:
        return None
    seen.add(id(value))
    if type(value).__module__ == "builtins":
        return None
    if depth > _DEEP:
        return "its parts lie too deep to follow"
    if _SUSPECT.match(type(value).__name__):
        return f"it holds a {type(value).__name__}"
    if hasattr(type(value), "set_epoch"):
        return f"it holds a {type(value).__name__} that has set_epoch"
    for name in _CALLED:
        method = _own(getattr(type(value), name, None))
        if isinstance(method, types.FunctionType):
            reason = _method(method, value, seen, depth + 1)
            if reason:
                return reason
    for held in list(getattr(value, "__dict__", {}).values()):
        reason = _value(held, seen, depth + 1)
        if reason:
            return reason
    return None
