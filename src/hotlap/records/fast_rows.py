"""The rows that come by the hundred thousand, checked as strictly as by :mod:`hotlap.records.codec`, and much faster.

What is not plainly right gives None: the slow way then says what is wrong, and where.
"""

from __future__ import annotations

from typing import Any

from hotlap.records.rows import Hits, Load, Step

__all__ = ["fast_row"]

_STEP_INTS = ("i", "n", "t", "w", "s", "m", "lo", "lo_n", "mx")
_STEP_KEYS = frozenset((*_STEP_INTS, "p", "l"))
_STEP_DEFAULTS: dict[str, Any] = {"lo": 0, "lo_n": 0, "mx": 0}
_HITS_KEYS = frozenset(("t", "every_ns", "h"))
_LOAD_INTS = ("t", "w", "batches", "samples", "decode", "collate", "cpu")
_LOAD_KEYS = frozenset((*_LOAD_INTS, "read_bytes", "validation", "training", "sq"))
_LOAD_DEFAULTS: dict[str, Any] = {"read_bytes": None, "validation": False, "training": True, "sq": None}

_INT = {int}
_PHASE_TYPES = {int, type(None)}
_LOSS_TYPES = {float, type(None)}


def fast_row(kind: str, data: dict[str, Any]) -> Any:
    """The row, or None where the kind or the data want the slow way."""
    if kind == "step":
        return _step(data)
    if kind == "hits":
        return _hits(data)
    if kind == "load":
        return _load(data)
    return None


def _step(data: dict[str, Any]) -> Step | None:
    if not data.keys() <= _STEP_KEYS:
        return None
    values = {**_STEP_DEFAULTS, **data}
    losses = values.setdefault("l", [])
    phases = values.get("p")
    if len(values) != len(_STEP_KEYS) or type(phases) is not list or type(losses) is not list:
        return None
    if {type(values[name]) for name in _STEP_INTS} != _INT or not set(map(type, phases)) <= _PHASE_TYPES:
        return None
    if losses and not set(map(type, losses)) <= _LOSS_TYPES:
        return None
    return Step(**values)


def _hits(data: dict[str, Any]) -> Hits | None:
    if data.keys() != _HITS_KEYS or type(data["t"]) is not int or type(data["every_ns"]) is not int:
        return None
    hits = data["h"]
    if type(hits) is not list:
        return None
    for entry in hits:
        if type(entry) is not list or set(map(type, entry)) != _INT:
            return None
    return Hits(**data)


def _load(data: dict[str, Any]) -> Load | None:
    if not data.keys() <= _LOAD_KEYS:
        return None
    values = {**_LOAD_DEFAULTS, **data}
    if len(values) != len(_LOAD_KEYS) or {type(values[name]) for name in _LOAD_INTS} != _INT:
        return None
    if type(values["validation"]) is not bool or type(values["training"]) is not bool:
        return None
    if type(values["read_bytes"]) not in _PHASE_TYPES or type(values["sq"]) not in _LOSS_TYPES:
        return None
    return Load(**values)
