"""How one value of a benchmark's results is written for people: with its unit, and with its spread where it has one.

Names carry units (`_s`, `_bytes`, `_per_s`, `_frac`), and spread has few forms: a list of runs, a median with lowest
and highest, a ratio with its interval. Whatever else there is gets said by name, never left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

from hotlap.report import units

__all__ = ["number", "rows", "spread", "value"]

MOST_ENTRIES = 24
"""A dict or a list that is longer is raw data: it is counted here, and stands in the file."""
SHARES = ("share", "cause", "line", "alone", "recovered", "traceml_phase", "tool_over_hand")


def _unit(name: str) -> Callable[[float], str]:
    """What the last word of a name says about its unit."""
    if name.endswith("per_s"):
        return units.per_s
    if name.endswith("_s"):
        return units.seconds
    if name.endswith("bytes"):
        return units.bytes_
    if name.endswith("_mb"):
        return lambda mb: f"{units.plain(mb)} MB"
    if name.endswith("_frac") or "share" in name or "of_roof" in name or name in SHARES:
        return units.share
    if name in ("ratio", "ratios", "factor", "cumulated") or "_over_" in name or name.endswith("_factor"):
        return units.ratio
    return units.plain


def number(name: str, found: float) -> str:
    """A single number; whole ones are counts unless their name says a unit."""
    unit = _unit(name)
    return units.count(found) if isinstance(found, int) and unit is units.plain else unit(found)


def spread(name: str, found: list[float]) -> str:
    """``1.42x [1.38, 1.50] in 5 runs``: the median, the lowest and the highest."""
    one = [number(name, x) for x in (statistics.median(found), min(found), max(found))]
    return f"{one[0]} [{one[1]}, {one[2]}] in {len(found)} runs"


def _is_number(found: Any) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool)


def value(name: str, found: Any) -> str | None:
    """A value that fits one cell; None when it has parts of its own to tell."""
    if found is None:
        return "not measured"
    if isinstance(found, bool):
        return "yes" if found else "no"
    if _is_number(found):
        return number(name, found)
    if isinstance(found, str):
        return found
    if isinstance(found, list):
        return _list(name, found)
    if isinstance(found, dict):
        return _dict(name, found)
    raise TypeError(f"{name}: {type(found).__name__} is no value of a JSON file")


def _list(name: str, found: list[Any]) -> str:
    if not found:
        return "none"
    if all(map(_is_number, found)):
        return spread(name, found) if len(found) > 1 else number(name, found[0])
    if all(isinstance(x, str) for x in found) and len(found) <= MOST_ENTRIES:
        return ", ".join(found)
    if all(isinstance(x, list) and len(x) == len(found[0]) and all(map(_is_number, x)) for x in found):
        return "; ".join(spread(name, list(column)) for column in zip(*found, strict=True))
    return f"{len(found)} entries, in the file"


def _dict(name: str, found: dict[str, Any]) -> str | None:
    if {"median", "lowest", "highest"} <= found.keys():
        middle, low, high = (number(name, found[key]) for key in ("median", "lowest", "highest"))
        return f"{middle} [{low}, {high}]"
    if {"ratio", "low", "high"} <= found.keys():
        level = f", level {found['level']:g}" if found.get("level") else ""
        launches = f", {found['launches']} launches" if found.get("launches") else ""
        return f"{units.ratio_interval(found['ratio'], found['low'], found['high'])}{level}{launches}"
    if not found:
        return "none"
    return f"{len(found)} entries, in the file" if len(found) > MOST_ENTRIES else None


def rows(figures: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """(name, words) of everything in ``figures``, parts under their whole's name."""
    for name, found in figures.items():
        words = value(name, found)
        if words is None:
            yield from rows(found, f"{before}{name} · ")
        else:
            yield f"{before}{name}", words
