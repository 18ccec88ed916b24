"""``guard.json``: what the guard of ``hotlap run`` saw: how long the run was, and every drift that it warned of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from hotlap.records.findings import Where

__all__ = ["SCHEMA", "Alarm", "GuardRecord"]

SCHEMA: Literal["hotlap.guard/1"] = "hotlap.guard/1"


@dataclass(frozen=True)
class Alarm:
    """Steps (or validations) got slower, and why."""

    at_step: int
    """Where the slow part begins."""
    found_step: int
    """The last step that was seen when the warning was given."""
    at_s: float
    """Seconds from the first recorded step to ``at_step``."""
    found_s: float
    """Seconds from there to the warning, on the run's own clock."""
    before_s: float
    after_s: float
    """Seconds per step, or per validation where ``phase`` says so."""
    phase: str
    """The phase that grew most."""
    growing: bool
    """True: a steady growth rather than one change."""
    cause: str
    """A cause id: of ``records/causes.py``, CAUSES or AROUND."""
    where: list[Where]
    advice: str
    evidence: dict[str, Any] = field(default_factory=dict)
    over_step: int | None = None
    """The step from which the step time was back; None: it was not seen to come back."""


@dataclass(frozen=True)
class GuardRecord:
    """Written after each warning and at the end of the run."""

    steps: int
    samples: int
    """0 when unknown."""
    train_s: float
    """Seconds from the first recorded step to the last."""
    alarms: list[Alarm] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    current: Alarm | None = None
    """The drift that went on when this was written; it may have been told as another alarm, or not again."""
    schema: Literal["hotlap.guard/1"] = SCHEMA
