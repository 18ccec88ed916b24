"""Checking a (hand-edited) setting: unknown keys, missing keys, types and ranges, in words."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from hotlap.lever.contract import Setting
from hotlap.records.machine import Machine

__all__ = ["MAX_BYTES", "Rule", "check_max_bytes", "check_setting"]

_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@dataclass(frozen=True)
class Rule:
    """What one key of a setting may hold. Booleans never pass as numbers."""

    kind: type
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    optional: bool = False
    """True: ``null`` is allowed (the key itself must be there)."""

    def words(self) -> str:
        """What may stand there, as ``a whole number from 1 to 64, or null``."""
        bounds = [f" {way} {at:.15g}" for way, at in (("from", self.low), ("to", self.high)) if at is not None]
        return (" or ".join(self.choices) or _NAMES[self.kind] + "".join(bounds)) + ", or null" * self.optional


MAX_BYTES = {"max_bytes": Rule(int, 1 << 20)}
"""The rules of a lever whose setting is the memory that it may take."""


def check_setting(setting: Setting, rules: Mapping[str, Rule]) -> str | None:
    """The first thing wrong with ``setting``, as a sentence that starts with the key, or None."""
    for key in setting:
        if key not in rules:
            near = difflib.get_close_matches(str(key), rules, n=1)
            known = f"did you mean {near[0]}?" if near else f"known: {', '.join(rules) or 'none'}."
            return f"{key} is no key of this lever's setting; {known}"
    for key, rule in rules.items():
        if key not in setting:
            return f"{key} is missing."
        wrong = _check_value(setting[key], rule)
        if wrong:
            return f"{key} is {setting[key]!r}, expected {wrong}."
    return None


def check_max_bytes(setting: Setting, machine: Machine) -> str | None:
    """For a lever whose setting is the memory that it may take: a MiB or more, and no more than the machine has."""
    wrong = check_setting(setting, MAX_BYTES)
    if wrong is None and setting["max_bytes"] > machine.memory_bytes:
        return f"max_bytes is {setting['max_bytes']}, expected at most the machine's {machine.memory_bytes}."
    return wrong


def _check_value(value: object, rule: Rule) -> str | None:
    if value is None and rule.optional:
        return None
    expected = _NAMES[rule.kind]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = number if rule.kind is float else isinstance(value, rule.kind)
    if not fits or (rule.kind is int and isinstance(value, bool)):
        return expected + (" or null" if rule.optional else "")
    if rule.choices and value not in rule.choices:
        return f"one of {', '.join(rule.choices)}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if rule.low is not None and value < rule.low:
            return f"{expected} of at least {rule.low:g}"
        if rule.high is not None and value > rule.high:
            return f"{expected} of at most {rule.high:g}"
    return None
