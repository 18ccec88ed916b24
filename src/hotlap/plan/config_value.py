"""One value of a configuration file (YAML, JSON, TOML, INI): read, or changed in the text, everything else kept.

Whether a change is right is not argued but checked: the new text is parsed again and has to be the old document with
that one value replaced.
"""

from __future__ import annotations

import configparser
import copy
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import yaml

from hotlap.records.errors import EXIT_USAGE, HotlapError
from hotlap.records.knob import Scalar

__all__ = ["SUFFIXES", "coerced", "read_value", "write_value"]

SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".ini", ".cfg")
_VALUE = r"""("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,#}\]"']+)"""
_UNREADABLE = (
    yaml.YAMLError, configparser.Error, ValueError, LookupError, AttributeError, TypeError, OverflowError,
    RecursionError,
)  # fmt: skip
"""What the parsers let escape: PyYAML raises what it likes where a value is not what its tag says."""
_REST_OF_LINE = r"(\S(?:[^\r\n]*\S)?)"


def read_value(text: str, name: str, key: str) -> Scalar:
    """The value at ``key`` (``trainer.test_interval``, ``stages.0.lr``). ``name``: the file, for its suffix and errors.

    Raises HotlapError when the text cannot be parsed, has no such key, or has more than a single value there.
    """
    value = _parse(text, name)
    for part in key.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            known = ", ".join(map(str, value)) if isinstance(value, dict) and value else "none"
            raise HotlapError(f"{name} has no key {key!r}: {part!r} is missing.", f"Keys there: {known}.", EXIT_USAGE)
    if value is not None and not isinstance(value, str | int | float | bool):
        raise HotlapError(f"{key} in {name} is no single value.", "Name one of the values in it.", EXIT_USAGE)
    return value


def coerced(word: str, present: Scalar) -> Scalar:
    """What ``word`` of the command line means where ``present`` stands now: text stays text, numbers become numbers."""
    if isinstance(present, str):
        return word
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    known: dict[str, Scalar] = {"true": True, "false": False, "null": None}
    return known.get(word.lower(), word)


def write_value(text: str, name: str, key: str, value: Scalar) -> str:
    """The text with ``value`` at ``key``, not a character changed elsewhere. Raises HotlapError when that cannot be."""
    read_value(text, name, key)
    wanted = copy.deepcopy(_parse(text, name))
    holder = wanted
    *above, last = key.split(".")
    for part in above:
        holder = holder[int(part) if isinstance(holder, list) else part]
    holder[int(last) if isinstance(holder, list) else last] = value
    written = _written(value, PurePath(name).suffix)
    for start, end in _places(text, name, key):
        new = text[:start] + written + text[end:]
        try:
            if repr(_parse(new, name)) == repr(wanted):  # unlike ==, it tells 1 from 1.0 and True
                return new
        except HotlapError:
            continue  # this place was not the value's
    raise HotlapError(
        f"{key} in {name} cannot be set to {value!r} by changing its text alone.",
        "Give it a value of its own there (no anchor, no text of several lines).",
        EXIT_USAGE,
    )


def _parse(text: str, name: str) -> Any:
    suffix = PurePath(name).suffix
    try:
        if suffix in (".yaml", ".yml"):
            return yaml.safe_load(text)
        if suffix == ".json":
            return json.loads(text)
        if suffix == ".toml":
            return tomllib.loads(text)
        if suffix in (".ini", ".cfg"):
            return _ini(text)
    except _UNREADABLE as err:
        reason = " ".join(str(err).split())
        raise HotlapError(f"{name} cannot be read: {reason}.", "", EXIT_USAGE) from err
    raise HotlapError(f"{name} is no {', '.join(SUFFIXES)} file.", "Only these are known.", EXIT_USAGE)


def _ini(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, default_section="")
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names as they are spelled
    parser.read_string(text)
    return {section: dict(parser[section]) for section in parser.sections()}


def _written(value: Scalar, suffix: str) -> str:
    if suffix in (".ini", ".cfg"):
        return str(value)
    if suffix in (".yaml", ".yml"):
        return yaml.safe_dump(value, width=10_000, allow_unicode=True).removesuffix("\n").removesuffix("\n...")
    return json.dumps(value)


def _places(text: str, name: str, key: str) -> Iterator[tuple[int, int]]:
    """Where the value may stand: (start, end) in the text."""
    suffix = PurePath(name).suffix
    if suffix in (".yaml", ".yml"):
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        for part in key.split("."):
            node = _child(node, part)
        if node is not None:
            yield node.start_mark.index, node.end_mark.index
        return
    last = re.escape(key.rpartition(".")[2])
    ini = suffix in (".ini", ".cfg")
    pattern = rf"""(?:^|[\s,{{."'])["']?{last}["']?\s*[=:]\s*{_REST_OF_LINE if ini else _VALUE}"""
    for match in re.finditer(pattern, text, re.MULTILINE):
        yield match.span(1)


def _child(node: yaml.Node | None, part: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and part.isdecimal() and int(part) < len(node.value):
        found: yaml.Node = node.value[int(part)]
        return found
    return None
