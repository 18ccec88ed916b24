"""The plan: the moves that a run is to make. YAML that a person can read and edit; the host translates it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["KNOB", "PRESERVES", "SCHEMA", "Move", "Plan"]

SCHEMA: Literal["hotlap.plan/1"] = "hotlap.plan/1"
PRESERVES = ("bits", "maths", "distribution", "goal")
"""What a lever may change, strictest first."""
KNOB = "knob:"
"""How the lever id of a user's knob begins."""


@dataclass(frozen=True)
class Move:
    """One lever with one setting. ``gain`` is the measured ratio [low, high] on the machine of the plan."""

    lever: str
    setting: dict[str, Any]
    preserves: Literal["bits", "maths", "distribution", "goal"]
    gain: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def is_knob(self) -> bool:
        """Whether it sets one of the script's own options or configuration values; no lever of ours does that."""
        return self.lever.startswith(KNOB)


@dataclass(frozen=True)
class Plan:
    """Moves in the order in which they were kept, and where they were measured."""

    moves: list[Move]
    script: str = ""
    machine: str = ""
    torch: str = ""
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    created: str = ""
    schema: Literal["hotlap.plan/1"] = SCHEMA
