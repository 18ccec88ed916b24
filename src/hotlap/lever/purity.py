"""Whether a dataset's code may give another sample for the same index: read from its code, without running it."""

from __future__ import annotations

import dis
import random
import re
import types
from collections.abc import Iterator
from typing import Any

__all__ = ["impure_reason"]

_SUSPECT = re.compile(
    r"(?i)^_*(rand.*|.*_rand|.*random.*|.*augment.*|.*shuffle.*|.*jitter.*|.*noise.*|.*dropout.*|.*perm(utation)?|choices?|"
    r"uniform|normal|bernoulli|multinomial|poisson|.*generator|default_rng|.*rng|seed|manual_seed|urandom|token_bytes|"
    r"uuid\d?|time|time_ns|perf_counter|monotonic|now|today|.*epoch.*|global_step)$"
)
_LIBRARIES = (
    "torch.",
    "numpy.",
    "PIL.",
    "scipy.",
    "cv2.",
    "soundfile.",
    "os.",
    "posixpath.",
    "pathlib.",
    "json.",
    "builtins.",
)
_DEPTH = 6


def impure_reason(dataset: object) -> str | None:
    """Why samples of ``dataset`` may change between draws, or None when nothing in its code says so.

    Looked at: the names in ``__getitem__`` and in every function and callable object of the user's that it can reach,
    generators kept in attributes or globals, and writes to ``self``. Unknown code counts as a reason.
    """
    if hasattr(dataset, "set_epoch"):
        return "it has set_epoch, so samples may differ by epoch"
    method = getattr(type(dataset), "__getitem__", None)
    if not isinstance(method, types.FunctionType):
        return "its __getitem__ is not Python code"
    return _method(method, dataset, set(), 0) or _state(dataset, set(), 0)


def _is_generator(value: Any) -> bool:
    kind = type(value)
    return isinstance(value, random.Random) or kind.__name__ in ("Generator", "RandomState", "SystemRandom")


def _library(function: Any) -> bool:
    name = getattr(function, "__module__", None) or ""
    return (name + ".").startswith(_LIBRARIES) and "transforms" not in name


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _method(function: types.FunctionType, owner: Any, seen: set[int], depth: int) -> str | None:
    if id(function) in seen or _library(function):
        return None
    seen.add(id(function))
    if depth > _DEPTH:
        return "its code is too deep to follow"
    for code in _codes(function.__code__):
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


def _name(name: str, function: types.FunctionType, owner: Any, seen: set[int], depth: int) -> str | None:
    if _SUSPECT.match(name):
        return f"{function.__name__} uses {name}"
    reached = getattr(type(owner), name, None) if owner is not None else None
    if isinstance(reached, property):
        reached = reached.fget
    if isinstance(reached, types.FunctionType):
        return _method(reached, owner, seen, depth + 1)
    return _value(function.__globals__[name], seen, depth + 1) if name in function.__globals__ else None


def _value(value: Any, seen: set[int], depth: int) -> str | None:
    if _is_generator(value):
        return f"it uses a private {type(value).__name__}"
    if isinstance(value, types.FunctionType):
        return _method(value, None, seen, depth)
    if isinstance(value, types.MethodType):
        return (
            _method(value.__func__, value.__self__, seen, depth)
            if isinstance(value.__func__, types.FunctionType)
            else None
        )
    if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType) or _library(type(value)):
        return None
    return _state(value, seen, depth)


def _state(value: Any, seen: set[int], depth: int) -> str | None:
    """Attributes of an object of the user's, and what calling it does."""
    if id(value) in seen or depth > _DEPTH:
        return None
    seen.add(id(value))
    if isinstance(value, list | tuple):
        return next((r for v in value[:64] if callable(v) and (r := _value(v, seen, depth + 1))), None)
    if type(value).__module__ == "builtins":
        return None
    if _SUSPECT.match(type(value).__name__):
        return f"it holds a {type(value).__name__}"
    for name in ("__call__", "forward"):
        method = getattr(type(value), name, None)
        if isinstance(method, types.FunctionType):
            reason = _method(method, value, seen, depth + 1)
            if reason:
                return reason
    for held in list(getattr(value, "__dict__", {}).values()):
        reason = _value(held, seen, depth + 1)
        if reason:
            return reason
    return None
