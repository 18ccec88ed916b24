"""Inline or in the background, and by how many threads: found by trying at the start, beside the training as it is.

Inline, a batch is made by the training's own thread and the team of threads that waits for it anyway. A background
thread hides the loading where a core is free, and takes a core away where none is. Which of the two it is depends on
the training, so a few batches are made each way, in turn, and the way with the lower median time per batch stays. Where
the training still waits for its batches, twice the threads are tried against the best so far, until they do not pay.
The batches are the same either way.
"""

from __future__ import annotations

import statistics

__all__ = ["Placement"]

_COUNT = 6
"""Batches of a turn."""
_ROUNDS = 2
_MARGIN = 0.98
"""A way must win by two percent against the one before it: in the background, a slow read now and then is hidden, and
every thread more has a batch of its own in memory."""
_WAITS = 0.05
"""Share of the time that a training may wait for its batches before more threads are tried."""


class Placement:
    """Which way the next batch is to be made, told how long each took.

    mode     "auto", "inline" or "background"
    threads  how many in the background, None: found
    most     as many threads are tried at most
    ahead    batches that lie ready; they are used up before a change shows
    """

    def __init__(self, mode: str, threads: int | None = None, most: int = 1, ahead: int = 2) -> None:
        self._ahead, self._most = ahead, most if threads is None and mode != "inline" else 0
        first = threads or 1
        self.threads = 0 if mode == "inline" else first
        """In the background; 0: inline."""
        self._turn = [first, 0] if mode == "auto" else [self.threads]
        self.decided = mode == "inline" or (mode == "background" and self._most <= first)
        self._first, self._may_ask_again = self._turn, not self.decided
        self._begin()

    def ask_again(self) -> None:
        """Compare once more, from the beginning: what was read the first time came from the disk, and was checked."""
        if self._may_ask_again:
            self._may_ask_again = self.decided = False
            self._turn = self._first
            self._begin()

    def _begin(self) -> None:
        """Compare the ways of ``_turn``, the best so far first."""
        self._times: dict[int, list[float]] = {way: [] for way in self._turn}
        self._waited: dict[int, list[float]] = {way: [] for way in self._turn}
        self._turns = 0
        self._set(self._turn[0])

    def _set(self, threads: int) -> None:
        self._since_change = -(self._ahead + max(self.threads, threads) - 1)
        self.threads = threads

    @property
    def background(self) -> bool:
        """Whether threads of their own make the next batches."""
        return self.threads > 0

    def note(self, wall_s: float, waited_s: float = 0.0) -> None:
        """The time from asking for one batch to asking for the next, and how much of it passed until it was there."""
        if self.decided:
            return
        self._since_change += 1
        if self._since_change > 0:
            self._times[self.threads].append(wall_s)
            self._waited[self.threads].append(waited_s)
        if self._since_change >= _COUNT:
            self._turns += 1
            if self._turns < _ROUNDS * len(self._turn):
                self._set(self._turn[self._turns % len(self._turn)])
            else:
                self._judge()

    def _judge(self) -> None:
        best = self._turn[0]
        for way in self._turn[1:]:
            if statistics.median(self._times[way]) < _MARGIN * statistics.median(self._times[best]):
                best = way
        tried = max(self._turn)
        grew = len(self._turn) > 1 and tried > 1 and best != tried  # twice the threads were tried, and did not pay
        if tried < self._most and not grew and self._waits(tried):
            self._turn = [best, min(2 * tried, self._most)]
            self._begin()
            return
        self._set(best)
        self.decided = True

    def _waits(self, way: int) -> bool:
        """Whether the training waited for its batches; its own part of them is a median: it validates now and then."""
        waited = self._waited[way]
        own_s = statistics.median(wall_s - s for wall_s, s in zip(self._times[way], waited, strict=True))
        return sum(waited) > _WAITS * (sum(waited) + len(waited) * own_s)
