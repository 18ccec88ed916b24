"""``check.json``: is the working tree slower than a git revision of it, by more than is allowed?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hotlap.records.machine import Machine
from hotlap.records.plan import Plan
from hotlap.records.trials import Trial

__all__ = ["Check"]


@dataclass(frozen=True)
class Check:
    """One comparison, both arms side by side on one machine."""

    verdict: Literal["proved", "not proved", "refuted"]
    """Of the claim that the working tree is not slower by more than ``max_slowdown_frac``."""
    max_slowdown_frac: float
    seen_from_frac: float
    """Slowdown that has even odds of being refuted at this budget."""
    against: str
    """The revision as it was named."""
    commit: str
    changed: int | None
    """Tracked files that differ from it; None: git would not say."""
    command: list[str]
    trial: Trial
    """Baseline: the revision; candidate: the working tree."""
    machine: Machine
    notes: list[str] = field(default_factory=list)
    created: str = ""
    plan: Plan | None = None
    """With which both ran; None: with none."""
    schema: Literal["hotlap.check/1"] = "hotlap.check/1"
