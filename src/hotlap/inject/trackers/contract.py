"""What a tracker is to the export."""

from __future__ import annotations

from typing import Protocol

from hotlap.records.figures import PREFIX, Figures

__all__ = ["TOLD", "Tracker", "Unheard"]

TOLD = PREFIX + "drift_told"
"""Drifts in words. The series ``hotlap/drift`` holds 1 while one goes on."""


class Tracker(Protocol):
    """One way of keeping a record that the script uses."""

    name: str
    given: int
    """How often figures were handed over."""

    def give(self, figures: Figures) -> None:
        """Called on a thread of Hotlap's own. Without an open run of the script's this does nothing."""


class Unheard:
    """Which of the drifts that were told a run has not got yet."""

    def __init__(self) -> None:
        self._heard = 0

    def of(self, figures: Figures) -> list[str]:
        """Those, oldest first."""
        return figures.drifts[self._heard :]

    def have(self, figures: Figures) -> None:
        """All of these have arrived."""
        self._heard = len(figures.drifts)
