"""Calls counted per line of the user's (syncs, prints, loggers), written now and then."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any

from hotlap.probe.own_frames import strip
from hotlap.probe.recorder import Recorder
from hotlap.records.rows import Site

__all__ = ["Pace", "Place", "Sites", "counted", "counted_whole"]


class Pace:
    """When to write a row of running counts: often at first, ever more rarely as the run grows old."""

    def __init__(self, first_s: float = 1.0, share: float = 0.02, most_s: float = 0.0) -> None:
        self._first_ns = int(first_s * 1e9)
        self._share = share
        self._most_ns = int(most_s * 1e9) or sys.maxsize
        self._begun = 0
        self._last = 0

    def due(self, now: int) -> bool:
        """Whether ``share`` of the run's age (at most ``most_s``, unless that is 0) has passed since the last row."""
        if not self._begun:
            self._begun = self._last = now
            return False
        share_ns = min(self._most_ns, int((now - self._begun) * self._share))
        if now - self._last < max(self._first_ns, share_ns):
            return False
        self._last = now
        return True


class Place:
    """Calls of one operation from one line: running totals, and what of them was written."""

    __slots__ = ("frame", "kind", "n", "ns", "op", "told_n", "told_ns")

    def __init__(self, kind: str, op: str, frame: int) -> None:
        self.kind = kind
        self.op = op
        self.frame = frame
        self.n = self.ns = self.told_n = self.told_ns = 0


class Sites:
    """Counts by kind, operation and line of the user's."""

    def __init__(self, rec: Recorder) -> None:
        self._rec = rec
        self._by_frame: dict[tuple[str, str, int], Place] = {}
        self._pace = Pace()
        self.inside_whole = False
        """The training thread is within a call that is counted with all that it does."""

    def find(self, kind: str, op: str, caller: FrameType, known: dict[tuple[int, int], Place]) -> Place:
        """The place of the innermost user line at ``caller`` or above. Put into ``known`` when it is ``caller``'s."""
        frames = self._rec.frames
        frame = frames.user_frame(caller)
        number = 0 if frame is None else frames.number(frame)
        place = self._by_frame.get((kind, op, number))
        if place is None:
            place = self._by_frame[kind, op, number] = Place(kind, op, number)
        if frame is caller:
            known[id(caller.f_code), caller.f_lasti] = place  # the table of frames keeps the code alive
        return place

    def write(self, now: int, last: bool = False) -> None:
        """Emit rows when they are due."""
        if not last and not self._pace.due(now):
            return
        for place in list(self._by_frame.values()):
            n, ns = place.n, place.ns
            if n > place.told_n and place.frame:
                self._rec.emit(Site(now, place.kind, place.op, place.frame, n - place.told_n, ns - place.told_ns))
            place.told_n, place.told_ns = n, ns


def counted(
    rec: Recorder,
    sites: Sites,
    original: Callable[..., Any],
    kind: str,
    op: str,
    phase: int,
    compiling: Callable[[], bool],
) -> Callable[..., Any]:
    """``original`` timed as ``phase`` and counted by the line that calls it, where training runs and no phase is open.

    ``compiling`` is asked first: a compiler that traces must meet no state of Hotlap's.
    """
    clock, here = rec.clock, sys._getframe
    known: dict[tuple[int, int], Place] = {}

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if compiling():
            return original(*args, **kwargs)
        try:
            if rec.skips[phase] or rec.cur is not None or rec.step_start is None or get_ident() != rec.thread:
                return original(*args, **kwargs)
            if rec.brief and rec.hooks.phase(here(1)) is not None:
                return original(*args, **kwargs)
            rec.cur = phase
            rec.gc_ns = 0
            rec.t0 = clock()
            try:
                return original(*args, **kwargs)
            finally:
                if rec.cur == phase:
                    spent = clock() - rec.t0 - rec.gc_ns
                    rec.acc[phase] += spent
                    rec.cur = None
                    caller = here(1)
                    place = known.get((id(caller.f_code), caller.f_lasti)) or sites.find(kind, op, caller, known)
                    place.n += 1
                    place.ns += spent
                    if not rec.brief:
                        rec.calls[phase] += 1
        except BaseException as err:
            strip(err)
            raise

    rec.hooks.add(call, None)
    return call


def counted_whole(
    rec: Recorder, sites: Sites, original: Callable[..., Any], kind: str, op: str, compiling: Callable[[], bool]
) -> Callable[..., Any]:
    """``original`` counted with its whole wall time, in whatever phase, by the line that calls it once training runs.

    ``compiling`` is asked first: a compiler that traces must meet no state of Hotlap's.
    """
    clock, here = rec.clock, sys._getframe
    known: dict[tuple[int, int], Place] = {}

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if compiling() or rec.step_start is None or get_ident() != rec.thread:
            return original(*args, **kwargs)
        begun, within, sites.inside_whole = clock(), sites.inside_whole, True
        try:
            return original(*args, **kwargs)
        except BaseException as err:
            strip(err)
            raise
        finally:
            sites.inside_whole = within
            caller = here(1)
            place = known.get((id(caller.f_code), caller.f_lasti)) or sites.find(kind, op, caller, known)
            place.n += 1
            place.ns += clock() - begun

    return call
