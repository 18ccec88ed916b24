"""Strict translation between frozen dataclasses and JSON values.

Unknown keys, missing keys and wrong types are errors that name the path of the value
(``$.moves[1].setting``), so that a hand-edited document fails where it is wrong.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import sys
import types
import typing
from functools import cache
from typing import Any, TypeVar

from hotlap.records.errors import RecordError

__all__ = ["check_schema", "decode", "dumps", "encode", "loads", "parse"]

T = TypeVar("T")


def encode(value: Any) -> Any:
    """Turn dataclasses, tuples and dicts into plain JSON values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): encode(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [encode(v) for v in value]
    return value


def dumps(value: Any, indent: int | None = 2) -> str:
    """Serialise a document. NaN and infinity are refused: a document states numbers or None."""
    return json.dumps(encode(value), indent=indent, allow_nan=False)


def parse(text: str | bytes) -> Any:
    """JSON text as plain values. Raises ValueError, whatever is wrong with it: it may nest too deeply, too."""
    try:
        return json.loads(text)
    except RecursionError as err:
        raise ValueError("it nests too deeply") from err


def loads(cls: type[T], text: str, name: str = "document") -> T:
    """Parse JSON text strictly into ``cls``; ``name`` is what error messages call it."""
    try:
        data = parse(text)
    except ValueError as err:
        raise RecordError(f"{name} is not valid JSON: {err}.") from err
    for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        if field.name == "schema" and isinstance(field.default, str) and isinstance(data, dict) and "schema" in data:
            check_schema(data, field.default, name)
    return typing.cast(T, decode(cls, data, name))


def check_schema(data: Any, schema: str, name: str) -> None:
    """Check the ``schema`` key (``hotlap.plan/1``): another document, or one from a newer Hotlap, is an error."""
    found = data.get("schema") if isinstance(data, dict) else None
    if found == schema:
        return
    kind, _, version = schema.rpartition("/")
    if isinstance(found, str) and found.startswith(kind + "/"):
        their = found.rpartition("/")[2]
        if their.isdecimal() and len(their) < 10 and int(their) > int(version):
            raise RecordError(
                f"{name} has schema {found!r}, this Hotlap reads {schema!r}.",
                "It was written by a newer Hotlap. Upgrade Hotlap (in a clone: `git pull`).",
            )
    raise RecordError(f"{name} has schema {found!r}, expected {schema!r}.", "Is it the right file?")


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def decode(cls: Any, data: Any, path: str = "$") -> Any:
    """Check ``data`` against the type ``cls`` (dataclass, list, dict, union, Literal, scalar) and build it."""
    origin = typing.get_origin(cls)
    if cls is Any or cls is object:
        return data
    if dataclasses.is_dataclass(cls):
        return _decode_dataclass(typing.cast(type, cls), data, path)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(cls, data, path)
    if origin is typing.Literal:
        if data not in typing.get_args(cls):
            raise RecordError(f"{path} is {data!r}, expected one of {', '.join(map(repr, typing.get_args(cls)))}.")
        return data
    if origin in (list, tuple):
        if not isinstance(data, list):
            raise RecordError(f"{path} is {_kind(data)}, expected a list.")
        args = typing.get_args(cls)
        items = [decode(args[0], v, f"{path}[{i}]") for i, v in enumerate(data)]
        return items if origin is list else tuple(items)
    if origin is dict:
        if not isinstance(data, dict):
            raise RecordError(f"{path} is {_kind(data)}, expected a mapping.")
        value_type = typing.get_args(cls)[1]
        return {str(k): decode(value_type, v, f"{path}.{k}") for k, v in data.items()}
    return _decode_scalar(cls, data, path)


def _decode_scalar(cls: Any, data: Any, path: str) -> Any:
    if cls is type(None):
        ok = data is None
    elif cls is float:
        ok = isinstance(data, int | float) and not isinstance(data, bool)
        if ok and isinstance(data, int) and abs(data) > sys.float_info.max:
            raise RecordError(f"{path} is a number beyond all that a float holds.")
        data = float(data) if ok else data
    elif cls is int:
        ok = isinstance(data, int) and not isinstance(data, bool)
    else:
        ok = isinstance(data, cls)
    if not ok:
        raise RecordError(f"{path} is {_kind(data)} ({data!r:.60}), expected {getattr(cls, '__name__', cls)}.")
    return data


def _decode_union(cls: Any, data: Any, path: str) -> Any:
    members = typing.get_args(cls)
    if data is None and type(None) in members:
        return None
    last: RecordError | None = None
    for member in members:
        if member is type(None):
            continue
        try:
            return decode(member, data, path)
        except RecordError as err:
            last = err
    assert last is not None
    raise last


def _decode_dataclass(cls: type[Any], data: Any, path: str) -> Any:
    if not isinstance(data, dict):
        raise RecordError(f"{path} is {_kind(data)}, expected a mapping with the keys of {cls.__name__}.")
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for key in data:
        if key not in fields:
            near = difflib.get_close_matches(str(key), fields, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known keys: {', '.join(fields)}."
            raise RecordError(f"{path} has an unknown key {key!r}.", hint)
    hints = _hints(typing.cast(typing.Hashable, cls))
    values = {}
    for name, field in fields.items():
        if name in data:
            values[name] = decode(hints[name], data[name], f"{path}.{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise RecordError(f"{path} lacks the key {name!r}.")
    return cls(**values)


def _kind(data: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true/false", type(None): "empty"}
    return names.get(type(data), "a number")
