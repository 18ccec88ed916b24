"""``figures.json``: what the guard hands to the script's process, for the tracker that the script uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["NAME", "PREFIX", "SCHEMA", "Figures"]

NAME = "figures.json"
"""Lies beside the timelines of a guarded run, and is replaced as a whole every few seconds."""
PREFIX = "hotlap/"
"""Every series begins with it, so that trackers show them in a group of their own."""
SCHEMA: Literal["hotlap.figures/1"] = "hotlap.figures/1"


@dataclass(frozen=True)
class Figures:
    """How the run goes now. What was not measured is left out of ``values``."""

    pid: int
    """The process that trains: the others leave the figures alone."""
    step: int
    """Steps made so far."""
    values: dict[str, float]
    """By the name of the series, :data:`PREFIX` included."""
    drifts: list[str] = field(default_factory=list)
    """What was told of drifts and of their end so far, oldest first."""
    schema: Literal["hotlap.figures/1"] = SCHEMA
