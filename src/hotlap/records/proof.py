"""The proof: the speedup with its interval, and the verdict on quality, with the raw data that they rest on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from hotlap.records.trials import Interval

__all__ = ["Proof", "Quality"]


@dataclass(frozen=True)
class Quality:
    """Is the training still the same training?"""

    verdict: Literal["proved", "not proved", "refuted"]
    kind: Literal["bits", "non-inferior", "target", "none"]
    """``bits``: losses equal bit for bit. ``non-inferior``: within a margin over paired seeds. ``target``: a loss that
    was asked for is reached."""
    summary: str
    """One sentence for people."""
    delta_frac: float | None = None
    """(candidate - baseline) / baseline of the final loss, mean over seeds; positive is worse."""
    upper_frac: float | None = None
    """Upper confidence bound of ``delta_frac``."""
    margin_frac: float | None = None
    seeds: int = 0
    steps: int = 0
    first_difference: int | None = None
    """First step whose losses differ, when bits were claimed and do not hold."""
    time_to_loss: float | None = None
    """How many times sooner (wall) the candidate reaches the baseline's final loss."""
    raw: dict[str, Any] = field(default_factory=dict)
    """Loss curves: {arm: [[per step] per seed]}."""


@dataclass(frozen=True)
class Proof:
    """What ``hotlap speedup`` can vouch for."""

    speedup: Interval | None
    quality: Quality
    claimed: bool
    """Whether the interval excludes 1.0 and the plan has a move."""
    samples_per_s: float | None = None
    roof_share: float | None = None
    notes: list[str] = field(default_factory=list)
    schema: Literal["hotlap.proof/1"] = "hotlap.proof/1"
