"""The clockwork: exclusive phases on the training thread, added up per step.

One phase is open at a time. While one is, what begins inside it belongs to it (a print inside a validation is
validation). Pauses of the garbage collector are taken out of the open phase. What no phase covers is the residual.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock, get_ident
from typing import Any, Protocol

from hotlap.probe.frames import FrameTable
from hotlap.probe.hook_codes import HookCodes
from hotlap.records.rows import PHASES

__all__ = [
    "ALL_TIMED",
    "BACKWARD",
    "CHECKPOINT",
    "DATA_WAIT",
    "FORWARD",
    "GC",
    "H2D",
    "LOGGING",
    "OPTIMIZER",
    "RESIDUAL",
    "SYNC",
    "VALIDATION",
    "ZERO_GRAD",
    "Recorder",
    "Skips",
    "StepRow",
]

(DATA_WAIT, H2D, FORWARD, BACKWARD, OPTIMIZER, ZERO_GRAD, VALIDATION, CHECKPOINT, LOGGING, SYNC, GC, RESIDUAL) = range(
    len(PHASES)
)

Skips = tuple[bool, ...]
"""By phase: whether nobody measures it now."""

StepRow = tuple[int, int, int, list[int], int, int, int, int, list[Any], int, int, Skips]
"""Index of the first step, start ns, wall ns, ns per phase (residual not yet filled in), samples, micro-batches, lo,
lo_n, losses of the last step, how many steps, the longest of them, and what was not measured in them."""

ALL_TIMED: Skips = (False,) * len(PHASES)

LOOKS = (2, 4, 6, 20, 100, 1000, 10_000)
"""After these steps, and every last of them, the model and the switches are looked at (again)."""

MAX_ROWS = 200_000
"""Rows held for the writer when it cannot keep up; more are dropped and counted."""


class DetailRows(Protocol):
    """Decides which steps are measured in full, and keeps the row of those that are not."""

    open: bool
    """Whether there is such a row now."""
    never: bool
    """All steps are measured in full."""

    def close(self, now: int) -> None: ...
    def tear(self) -> None: ...
    def after_full(self, index: int, wall: int, now: int) -> None: ...
    def forget(self) -> None: ...


class Recorder:
    """Phases, steps and rows of one process. ``clock`` gives nanoseconds."""

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.clock = clock
        self.cur: int | None = None
        self.t0 = 0
        self.gc_ns = 0
        self.acc = [0] * len(PHASES)
        self.thread = get_ident()
        self.step_index = 0
        self.step_start: int | None = None
        self.samples = 0
        self.micro = 0
        self.lo = 0
        self.lo_n = 0
        self.losses: list[Any] = []
        self.asking = Lock()
        """Held while another thread asks the device, which the beginning of a CUDA graph's capture must wait for."""
        self.backwards = self.profiled = self.anomalous = 0
        """Backward passes watched since the last look, and those of them that torch's profiler recorded."""
        self.steps: list[StepRow] = []
        self.rows: list[Any] = []
        self.dropped = 0
        self.started = False
        self.on_start: Callable[[], None] | None = None
        self.on_step_end: list[Callable[[int], None]] = []
        self.on_look: list[Callable[[int], None]] = []
        """Called after the steps of :data:`LOOKS`."""
        self.next_look = LOOKS[0]
        self.on_failure: Callable[[Exception], None] = lambda err: None
        self.frames = FrameTable(self.emit)
        self.detail: DetailRows | None = None
        self.brief = False
        """Whether the probes of forwards, backwards and updates look away (see :mod:`hotlap.probe.detail`)."""
        self.skips = ALL_TIMED
        """Phases that are not measured now."""
        self.calls = [0] * len(PHASES)
        """Calls timed in steps measured in full, of the phases whose calls are counted (sync, logging, h2d)."""
        self.hooks = HookCodes()
        self.briefly = 0
        """Steps measured in brief so far."""
        self.pending: Callable[[], int | None] = lambda: None
        """The first step that the device is not known to have ended; None: there is none to wait for. To read a value
        of such a step would wait for it, for ever where another rank is gone."""
        self.device: int | None = None
        """Index of the CUDA device that trains (probe/device_used). None: torch's current one, or no such device."""

    def emit(self, row: Any) -> None:
        """Hand a row to the writer."""
        if len(self.rows) < MAX_ROWS:
            self.rows.append(row)
        else:
            self.dropped += 1

    def sign_of_training(self) -> None:
        """A loader, a training forward, a backward or an optimizer step was seen: the first step may have begun."""
        if self.step_start is None:
            self.step_start = self.clock()
            self.acc = [0] * len(PHASES)
        if not self.started:
            self.started = True
            if self.on_start is not None:
                self.on_start()

    def not_yet(self) -> None:
        """What was seen before the first step was no training (a sanity validation): its time is no step's."""
        if self.step_index == 0:
            self.step_start = None
            self.samples = self.lo = self.lo_n = self.micro = 0
            self.losses = []

    def enter(self, phase: int) -> bool:
        """Open a phase. False (do not leave): another one is open, or this is not the training thread."""
        if self.cur is not None or get_ident() != self.thread:
            return False
        self.cur = phase
        self.gc_ns = 0
        self.t0 = self.clock()
        return True

    def leave(self) -> int:
        """Close the open phase; returns its nanoseconds without garbage collection."""
        phase = self.cur
        if phase is None:
            return 0
        spent = self.clock() - self.t0 - self.gc_ns
        self.acc[phase] += spent
        self.cur = None
        return spent

    def split(self, now: int) -> None:
        """Book the open phase up to ``now`` and let it go on: a step may end inside a phase."""
        if self.cur is not None:
            self.acc[self.cur] += now - self.t0 - self.gc_ns
            self.t0 = now
            self.gc_ns = 0

    def gc_pause(self, spent: int) -> None:
        """A garbage collection of ``spent`` ns ended on the training thread."""
        self.acc[GC] += spent
        if self.cur is not None:
            self.gc_ns += spent

    def end_step(self) -> None:
        """The step's last optimizer update has returned."""
        now = self.clock()
        self.split(now)
        self.close_step(now)

    def close_step(self, now: int) -> None:
        """The step ends at ``now``, while no phase is open (or the open one has been split)."""
        if self.detail is not None and self.detail.open:
            return self.detail.close(now)
        start = self.step_start
        if start is None:
            start = now
        index = self.step_index
        wall = now - start
        self.add_row(index, start, wall, 1, wall, ALL_TIMED)
        self.step_start = now
        self.step_index = index + 1
        if index == self.next_look:
            self._look(index)
        if self.on_step_end:
            self.tell_step_end(index)
        if self.detail is not None:
            self.detail.after_full(index, wall, now)

    def look_closely(self) -> None:
        """Something rare begins: what is left of this step is watched as in full."""
        if self.detail is not None:
            self.detail.tear()

    def add_row(self, index: int, start: int, wall: int, steps: int, longest: int, skips: Skips) -> None:
        """Keep what has been added up since the last row as the row of these steps."""
        if len(self.steps) < MAX_ROWS:
            self.steps.append(
                (index, start, wall, self.acc, self.samples, self.micro, self.lo, self.lo_n, self.losses, steps,
                 longest, skips)
            )  # fmt: skip
        else:
            self.dropped += 1
        self.acc = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        self.samples = self.micro = self.lo = self.lo_n = 0
        self.losses = []

    def tell_step_end(self, index: int) -> None:
        """Call those that wait for the end of each step."""
        for callback in tuple(self.on_step_end):  # one that fails is removed
            self._tell(callback, index)

    def _look(self, index: int) -> None:
        later = [step for step in LOOKS if step > index]
        self.next_look = later[0] if later else index + LOOKS[-1]
        for callback in self.on_look:
            self._tell(callback, index)

    def _tell(self, callback: Callable[[int], None], index: int) -> None:
        try:
            callback(index)
        except Exception as err:  # it looks at the script's own objects
            self.on_failure(err)

    def restart_in_child(self) -> None:
        """After a fork: this process has trained nothing yet and shares no file with its parent."""
        self.cur = None
        self.thread = get_ident()
        self.step_index = 0
        self.next_look = LOOKS[0]
        self.step_start = None
        self.samples = self.micro = self.lo = self.lo_n = self.dropped = 0
        self.backwards = self.profiled = self.anomalous = 0
        self.acc = [0] * len(PHASES)
        self.losses, self.steps, self.rows = [], [], []
        self.asking = Lock()
        self.started = False
        if self.detail is not None:
            self.detail.forget()
        self.frames.forget(self.emit)
