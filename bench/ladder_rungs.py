"""From a slow preset to the fast one, one change at a time, in the order of ladder_rungs.toml."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError

__all__ = ["TIERS", "Rung", "ladder"]

TIERS = ("quick wins", "medium", "advanced")
TABLE = Path(__file__).with_name("ladder_rungs.toml")


@dataclass(frozen=True)
class Rung:
    """``changes`` against the rung before (field -> new value), and the settings with all changes up to here."""

    name: str
    tier: str
    changes: dict[str, Any]
    settings: EngineSettings


def ladder(
    slow: EngineSettings,
    fast: EngineSettings,
    check: Callable[[EngineSettings], None],
    on: Literal["cpu", "cuda", "simulated"] = "cuda",
) -> list[Rung]:
    """The slow preset, then a rung for each change; the last one has the fast preset's settings.

    A change that makes no sense alone (``check`` raises SettingsError) waits for the next and shares its rung; so does,
    unnamed, one that is of no effect on this kind of device.
    """
    rungs = [Rung("slow", "", {}, slow)]
    names: list[str] = []
    changes: dict[str, Any] = {}
    last_tier = TIERS[-1]
    for name, tier, changed, seen in _changes(slow, fast, on):
        changes |= changed
        if seen:
            names.append(name)
            last_tier = tier
        settings = dataclasses.replace(rungs[-1].settings, **changes)
        if not names or not _makes_sense(settings, check):
            continue
        rungs.append(Rung(" + ".join(names), last_tier, changes, settings))
        names, changes = [], {}
    if names:
        check(fast)  # raises: the preset itself makes no sense
        rungs.append(Rung(" + ".join(names), last_tier, changes, fast))
    elif changes:
        end = rungs.pop()
        rungs.append(Rung(end.name, end.tier, end.changes | changes, fast))
    return rungs


def _makes_sense(settings: EngineSettings, check: Callable[[EngineSettings], None]) -> bool:
    try:
        check(settings)
    except SettingsError:
        return False
    return True


def _changes(slow: Any, fast: Any, on: str) -> Iterator[tuple[str, str, dict[str, Any], bool]]:
    """(name, tier, field -> value, whether it can be seen here) of every change, in order."""
    differing = {
        field.name: getattr(fast, field.name)
        for field in dataclasses.fields(fast)
        if getattr(fast, field.name) != getattr(slow, field.name)
    }
    for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["rung"]:
        changed = {name: differing.pop(name) for name in row["fields"] if name in differing}
        if changed:
            yield row["name"], row["tier"], changed, on not in row.get("unseen_on", ())
    for name, value in differing.items():
        yield name.replace("_", " "), TIERS[-1], {name: value}, True
