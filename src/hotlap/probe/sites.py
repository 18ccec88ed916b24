"""Calls counted per line of the user's (syncs, prints, loggers), written now and then."""

from __future__ import annotations

import sys

from hotlap.probe.recorder import Recorder
from hotlap.records.rows import Site

__all__ = ["Pace", "Sites"]


class Pace:
    """When to write a row of running counts: often at first, ever more rarely as the run grows old."""

    def __init__(self, first_s: float = 1.0, share: float = 0.02) -> None:
        self._first_ns = int(first_s * 1e9)
        self._share = share
        self._begun = 0
        self._last = 0

    def due(self, now: int) -> bool:
        """Whether ``share`` of the run's age has passed since the last row."""
        if not self._begun:
            self._begun = self._last = now
            return False
        if now - self._last < max(self._first_ns, int((now - self._begun) * self._share)):
            return False
        self._last = now
        return True


class Sites:
    """Counts by kind, operation and line."""

    def __init__(self, rec: Recorder) -> None:
        self._rec = rec
        self._counts: dict[tuple[str, str, int], list[int]] = {}
        self._pace = Pace()

    def count(self, kind: str, op: str, spent: int) -> None:
        """One call of ``spent`` ns from the innermost user line above."""
        frames = self._rec.frames
        frame = frames.user_frame(sys._getframe(2))
        key = (kind, op, 0 if frame is None else frames.number(frame))
        found = self._counts.get(key)
        if found is None:
            self._counts[key] = [1, spent]
        else:
            found[0] += 1
            found[1] += spent

    def write(self, now: int, last: bool = False) -> None:
        """Emit rows when they are due."""
        if not last and not self._pace.due(now):
            return
        counts, self._counts = self._counts, {}
        for (kind, op, frame), (n, spent) in counts.items():
            if frame:
                self._rec.emit(Site(now, kind, op, frame, n, spent))
