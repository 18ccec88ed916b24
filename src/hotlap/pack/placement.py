"""Inline or in the background: found by trying both at the start, beside the training as it is.

A background thread hides the loading where a core is free, and takes a core away where none is. Which of the two it is
depends on the training, so a few batches are made each way, in turn, and the way with the lower median time per batch
stays. The batches are the same either way.
"""

from __future__ import annotations

import statistics

__all__ = ["Placement"]

_SKIP = 2
"""Batches after a change that are not counted: the ones made before it are still being used up."""
_COUNT = 6
_ROUNDS = 2
_MARGIN = 0.98
"""Inline must win by two percent: in the background, a slow read now and then is hidden."""


class Placement:
    """Which way the next batch is to be made, told how long each took."""

    def __init__(self, mode: str) -> None:
        self.background = mode != "inline"
        self.decided = mode != "auto"
        self._times: dict[bool, list[float]] = {True: [], False: []}
        self._since_change = -_SKIP
        self._rounds = 0

    def note(self, wall_s: float) -> None:
        """The time from asking for one batch to asking for the next."""
        if self.decided:
            return
        self._since_change += 1
        if self._since_change > 0:
            self._times[self.background].append(wall_s)
        if self._since_change >= _COUNT:
            self._change()

    def _change(self) -> None:
        self._since_change = -_SKIP
        self._rounds += 1
        if self._rounds < 2 * _ROUNDS:
            self.background = not self.background
            return
        inline, background = (statistics.median(self._times[way]) for way in (False, True))
        self.background = not inline < background * _MARGIN
        self.decided = True
