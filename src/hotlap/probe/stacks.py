"""Stack samples of the main thread, by an interval timer with a jittered period.

A signal is seen at once, by the line that runs; a sampler thread would wait for the interpreter lock and blame the next
line that gives it up. A long C call delays the signal: the sample then counts for all the periods it stood for.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from hotlap.probe.frames import FrameTable
from hotlap.probe.sites import Pace
from hotlap.probe.undo import Undo
from hotlap.records.rows import Hits

__all__ = ["StackSampler"]

EAGER = 50
"""Samples taken at the rate asked for; after them the rate is the highest that costs no more than ``COST_FRAC``."""

COST_FRAC = 0.002
"""Of the training time, what taking samples may cost."""

UNSEEN_S = 50e-6
"""What a sample costs besides its handler's own time: the timer, the signal, and caches that the step wanted. Prior."""

MAX_COUNT = 100_000
"""Periods one late sample may stand for (a suspended process must not flood the counts)."""

_signal, _set_timer = signal.signal, signal.setitimer
"""As they are before anybody watches them: what Hotlap does with the signal is no doing of the script."""


_WAKEUP = "the script is woken by signals (asyncio's signal handlers), each of which would fill its pipe"


def _has_wakeup_fd() -> bool:
    found = signal.set_wakeup_fd(-1)
    if found != -1:
        signal.set_wakeup_fd(found)
    return found != -1


class StackSampler:
    """Samples while armed; steps aside for a script that uses the same signal or timer."""

    holder: StackSampler | None = None
    """Who samples in this process: in a loader worker it is not the one that came along with the fork."""

    def __init__(
        self,
        hz: float,
        frames: FrameTable,
        phase: Callable[[FrameType | None], int],
        emit: Callable[[Any], None],
        note: Callable[[str, str], None],
        most_s: float = 0.0,
    ) -> None:
        self._mean = self._least = 1.0 / hz if hz > 0 else 0.0
        self._n = 0
        self._cost = 0.0
        """Seconds that the handler takes, lately."""
        self._frames = frames
        self._phase = phase
        self._emit = emit
        self._note = note
        self._random = random.Random(os.getpid())
        self._counts: dict[tuple[int, int, int], int] = {}
        """Samples by stack, phase and the period in ns that they stand for."""
        self._pace = Pace(1.0, 0.02, most_s)
        self._armed = False
        self._away = hz <= 0
        self.wanted: Callable[[], bool] | None = None
        """When given and False, a sample is left out (a worker that waits for work)."""
        self._due = 0.0

    def arm(self) -> None:
        """Begin to sample, on the main thread; elsewhere, or if the script holds the signal, note why not."""
        if self._away or self._armed:
            return
        if threading.current_thread() is not threading.main_thread():
            return self._give_way("the training does not run on the main thread")
        if signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL or signal.getitimer(signal.ITIMER_REAL) != (0.0, 0.0):
            return self._give_way("the script uses SIGALRM or the real interval timer itself")
        if _has_wakeup_fd():
            return self._give_way(_WAKEUP)
        _signal(signal.SIGALRM, self._on_signal)
        signal.siginterrupt(signal.SIGALRM, False)
        self._armed = True
        StackSampler.holder = self
        self._next()

    def _give_way(self, why: str) -> None:
        self._away = True
        self._note("stacks", f"No stacks are sampled: {why}.")

    def _next(self) -> None:
        wait = self._mean * (0.5 + self._random.random())
        self._due = time.monotonic() + wait
        _set_timer(signal.ITIMER_REAL, wait)
        if not self._armed:  # disarmed by another thread meanwhile
            _set_timer(signal.ITIMER_REAL, 0.0)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self._armed:
            return
        try:
            begun = time.monotonic()
            if self.wanted is None or self.wanted():
                late = begun - self._due
                key = (self._frames.stack(frame), self._phase(frame), int(self._mean * 1e9))
                count = 1 + min(MAX_COUNT, int(late / self._mean)) if late > 0 else 1
                self._counts[key] = self._counts.get(key, 0) + count
                self._n += 1
                self._spare(begun)
            self._next()
        except Exception as err:  # it would come up in the middle of the script
            self.disarm()
            self._give_way(f"{type(err).__name__}: {err}")

    def _spare(self, begun: float) -> None:
        """Choose the period anew, but not for every little change: each period has rows of its own."""
        self._cost += (time.monotonic() - begun - self._cost) / 8
        wanted = max(self._least, (self._cost + UNSEEN_S) / COST_FRAC)
        if self._n > EAGER and not 0.8 < wanted / self._mean < 1.25:
            self._mean = wanted

    def disarm(self) -> None:
        """Stop sampling and put the signal back."""
        if not self._armed:
            return
        self._armed = False
        StackSampler.holder = None
        _set_timer(signal.ITIMER_REAL, 0.0)
        with contextlib.suppress(ValueError):  # not on the main thread: the timer is off, the handler does nothing
            if signal.getsignal(signal.SIGALRM) == self._on_signal:
                # A signal sent just before may still wait for another thread: ignoring discards it, the default kills.
                _signal(signal.SIGALRM, signal.SIG_IGN)
                _signal(signal.SIGALRM, signal.SIG_DFL)

    def retire(self) -> None:
        """Disarm, and never arm again: the process ends."""
        self.disarm()
        self._away = True

    def forget(self) -> None:
        """After a fork: the timer did not come along, the handler did."""
        if self._armed:
            self._armed = False
            StackSampler.holder = None
            _signal(signal.SIGALRM, signal.SIG_DFL)
        self._counts = {}

    def write(self, now: int, last: bool = False) -> None:
        """Emit the counts when they are due."""
        if not self._counts or not (self._pace.due(now) or last):
            return
        counts, self._counts = self._counts, {}
        for every_ns in sorted({period for _, _, period in counts}):
            hits = [[stack, phase, n] for (stack, phase, period), n in counts.items() if period == every_ns]
            self._emit(Hits(now, every_ns, hits))

    def install(self, undo: Undo) -> None:
        """Watch for the script taking the signal or the timer, and for what a running timer would end: what an ``exec``
        starts, and ``signal.pause``."""
        original_signal, original_timer, alarm = signal.signal, signal.setitimer, signal.alarm

        def taken(why: str = "the script took SIGALRM or the real interval timer") -> None:
            (StackSampler.holder or self)._taken(why)

        @functools.wraps(original_signal)
        def watched_signal(signalnum: Any, handler: Any) -> Any:  # as they are called by keyword
            holder = StackSampler.holder or self
            if signalnum == signal.SIGALRM and handler == signal.SIG_DFL:
                return holder._around(original_signal, signalnum, handler)
            if signalnum == signal.SIGALRM and handler != holder._on_signal:
                taken()
            return original_signal(signalnum, handler)

        @functools.wraps(original_timer)
        def watched_timer(which: Any, seconds: Any, interval: Any = 0.0) -> Any:
            if which == signal.ITIMER_REAL:
                taken()
            return original_timer(which, seconds, interval)

        wakeup = signal.set_wakeup_fd

        @functools.wraps(wakeup)
        def watched_wakeup(fd: Any, **kwargs: Any) -> Any:
            if fd != -1:
                taken(_WAKEUP)
            return wakeup(fd, **kwargs)

        @functools.wraps(alarm)
        def watched_alarm(seconds: Any) -> Any:
            taken()
            return alarm(seconds)

        undo.replace(signal, "signal", watched_signal)
        undo.replace(signal, "setitimer", watched_timer)
        undo.replace(signal, "alarm", watched_alarm)
        undo.replace(signal, "set_wakeup_fd", watched_wakeup)
        for name in ("execv", "execve"):
            undo.replace(os, name, self._unarmed(getattr(os, name)))
        if hasattr(signal, "pause"):  # any signal ends it, ours too
            undo.replace(signal, "pause", self._unarmed(signal.pause))
        undo.add(self.disarm)

    def _taken(self, why: str) -> None:
        if not self._away:
            self.disarm()
            self._give_way(why)

    def _around(self, original: Callable[..., Any], *args: Any) -> Any:
        """The call while nothing is armed. Who sets the default handler takes nothing: Lightning's Trainer puts all
        handlers back to what they were before its fit."""
        armed = self._armed
        self.disarm()
        try:
            return original(*args)
        finally:
            if armed:
                self.arm()

    def _unarmed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A call during which no signal comes from here."""

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            holder = StackSampler.holder
            if holder is not None:
                holder.disarm()
            try:
                return original(*args, **kwargs)
            finally:  # an exec is only followed by anything when it failed
                if holder is not None:
                    holder.arm()

        return call
