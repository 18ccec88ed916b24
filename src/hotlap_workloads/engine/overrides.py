"""Settings from outside: a key and a value become a field of the right type, or an error that names both."""

from __future__ import annotations

import dataclasses
import difflib
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError

__all__ = ["override", "parse_pairs"]

S = TypeVar("S", bound=EngineSettings)
_BOOLS = {"true": True, "false": False}
_SWITCHES = {"true": ("auto",), "false": ("off",)}
"""Of several choices, those that a plain switch means; YAML reads ``off`` as false."""


def parse_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """``["lr=0.1", ...]`` as written behind ``--set``."""
    out = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise SettingsError(f"--set {pair!r} is not key=value.", "For example: --set batch_size=32")
        out[key.strip()] = value.strip()
    return out


def override(settings: S, values: Mapping[str, object], where: str) -> S:
    """The settings with some fields replaced. ``where`` says in errors where the values come from."""
    hints = get_type_hints(type(settings))
    fields = {field.name for field in dataclasses.fields(settings)}
    parsed = {}
    for key, value in values.items():
        if key not in fields:
            raise SettingsError(f"{where}: there is no setting {key!r}.", nearest(key, fields))
        try:
            parsed[key] = _convert(hints[key], value)
        except (ValueError, TypeError):
            raise SettingsError(f"{where}: {key}={value!r} is not {describe(hints[key])}.") from None
    return dataclasses.replace(settings, **parsed)


def nearest(key: str, known: Iterable[str]) -> str:
    """The known key most like this one, as a hint."""
    folded = {name.replace("_", "").lower(): name for name in known}
    close = difflib.get_close_matches(key.replace("_", "").lower(), list(folded), 1, 0.0)
    return f"The nearest is {folded[close[0]]!r}." if close else ""


def describe(kind: Any) -> str:
    """A type in words."""
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(str(choice) for choice in get_args(kind))
    if get_origin(kind) is tuple:
        return f"a list of which each is {describe(get_args(kind)[0])}"
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    return words.get(kind, str(kind))


def _convert(kind: Any, value: object) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        raise TypeError("settings have one type")
    if origin is Literal:
        words = [str(value), *_SWITCHES.get(str(value).lower(), ())]
        match = [choice for choice in get_args(kind) if str(choice) in words]
        if not match:
            raise ValueError(value)
        return match[0]
    if origin is tuple:
        if isinstance(value, str):
            value = [part.strip() for part in value.strip("[]()").split(",") if part.strip()]
        if not isinstance(value, list | tuple):
            raise ValueError(value)
        return tuple(_convert(get_args(kind)[0], part) for part in value)
    if kind is bool:
        return value if isinstance(value, bool) else _bool(value)
    if kind is int:
        return _int(value)
    if kind is float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(value)
        return float(value)
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _bool(value: object) -> bool:
    """ "True", "False" as JSON configurations of some trainings write them."""
    if not isinstance(value, str) or value.strip().lower() not in _BOOLS:
        raise ValueError(value)
    return _BOOLS[value.strip().lower()]


def _int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(value)
    return int(value)
