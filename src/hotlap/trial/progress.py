"""What a trial tells the display while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["OnProgress", "Progress", "nowhere"]


@dataclass(frozen=True)
class Progress:
    """One look at a trial; sent a few times a second."""

    phase: str
    """``start``, ``warm-up`` or ``measure``."""
    arm: str
    """Name of the arm that is running."""
    elapsed_s: float
    budget_s: float
    steps: int
    """Steps of that arm so far."""
    note: str = ""


OnProgress = Callable[[Progress], None]


def nowhere(_: Progress) -> None:
    """For callers without a display."""
