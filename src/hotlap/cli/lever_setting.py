"""What may stand in a lever's setting, in words: for ``hotlap levers ID`` and the reference."""

from __future__ import annotations

from collections.abc import Mapping

from hotlap.lever.checks import Rule, check_max_bytes
from hotlap.lever.contract import Lever

__all__ = ["rules_of", "setting_lines"]

_KINDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def rules_of(lever: Lever) -> Mapping[str, Rule]:
    """The keys of a lever's setting and what each may hold; empty: it has none."""
    own: Mapping[str, Rule] | None = getattr(lever, "_RULES", None)
    if own is not None:
        return own
    caches = getattr(lever, "check_max_bytes", None) is check_max_bytes
    return {"max_bytes": Rule(int, 1 << 20)} if caches else {}


def setting_lines(lever: Lever) -> list[str]:
    """One line per key, ``dtype: bf16 or fp16``; without a key, what then stands in a plan."""
    return [f"{key}: {_value(rule)}" for key, rule in rules_of(lever).items()] or ["{}: it has no keys."]


def _value(rule: Rule) -> str:
    if rule.choices:
        text = " or ".join(rule.choices)
    elif rule.low is None and rule.high is None:
        text = _KINDS[rule.kind]
    else:
        bounds = [
            f"{name} {bound:.15g}" for name, bound in (("from", rule.low), ("to", rule.high)) if bound is not None
        ]
        text = f"{_KINDS[rule.kind]} {' '.join(bounds)}"
    return text + (", or null" if rule.optional else "")
