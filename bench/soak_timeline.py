"""A timeline as long as wanted, made in seconds: the recorder's own pieces, a clock that is told the time.

A step takes 60 ms, as in bench/timeline_size.py. Once in two hours the loader falls behind for ten minutes (a drift
that begins and ends), and validations and checkpoints come round, so that the guard has something to look at and tell.
"""

from __future__ import annotations

import os
from pathlib import Path

from timeline_size import STEP_NS, Clock

from hotlap.probe.recorder import BACKWARD, DATA_WAIT, FORWARD, OPTIMIZER, VALIDATION, ZERO_GRAD, Recorder
from hotlap.probe.sites import Pace
from hotlap.probe.step_rows import StepRows
from hotlap.probe.writer import Appender, row_text
from hotlap.records.rows import SCHEMA, Event, Frame, Header, Hits, Stack, Tick

__all__ = ["STEPS_PER_DAY", "Made"]

STEPS_PER_DAY = 86_400 * 10**9 // STEP_NS
SLOW_EVERY_S, SLOW_S = 7200, 600
VALIDATE_EVERY, CHECKPOINT_EVERY = 5_000, 20_000
SHARES = ((ZERO_GRAD, 60), (FORWARD, 4), (BACKWARD, 3), (OPTIMIZER, 12))


class Made:
    """The timeline of one process, in ``folder``. :meth:`advance` makes the next steps and writes them."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.path = folder / "made.jsonl"
        self.steps = 0
        self._begin = self.clock.now
        self._rec = Recorder(self.clock)
        self._text = StepRows()
        self._file = Appender(str(self.path))
        self._paces = {"hits": Pace(1.0, 0.02), "tick": Pace(1.0, 0.0005)}
        self._rec.sign_of_training()
        header = Header(SCHEMA, "soak", "train", os.getpid(), 1, 0, 1, ["soak.py"], str(folder), "3", "2", "cpu",
                        self.clock.now, 0.0)  # fmt: skip
        rows = [header, *(Frame(k, "soak.py", k + 1, "main", True) for k in range(40)),
                *(Stack(k, [0, k]) for k in range(40))]  # fmt: skip
        self._file.write("".join(map(row_text, rows)))

    @property
    def made_s(self) -> float:
        """Seconds of training so far."""
        return (self.clock.now - self._begin) / 1e9

    def advance(self, seconds: float) -> None:
        """So many seconds more."""
        until = self.made_s + seconds
        while self.made_s < until:
            self._step()
        self._write()

    def _spend(self, phase: int, ns: int) -> None:
        self._rec.enter(phase)
        self.clock.now += ns
        self._rec.leave()

    def _step(self) -> None:
        rec, odd = self._rec, (self.steps * 7919) % 100_003 * 10  # up to a millisecond, never twice the same row
        slow = self.made_s % SLOW_EVERY_S > SLOW_EVERY_S - SLOW_S
        self._spend(DATA_WAIT, STEP_NS // (2 if slow else 9) + odd)
        for phase, share in SHARES:
            self._spend(phase, STEP_NS // share)
        if self.steps % VALIDATE_EVERY == VALIDATE_EVERY - 1:
            rec.emit(Event("validation", self.clock.now, 10**9, self.steps))
            self._spend(VALIDATION, 10**9)
        if self.steps % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
            rec.emit(Event("checkpoint", self.clock.now, 10**8, self.steps))
        self.clock.now += STEP_NS * 3 // 14  # what no phase covers
        rec.samples, rec.micro, rec.losses = 128, 1, [2.0 / (1 + self.steps % 977)]
        rec.end_step()
        self.steps += 1

    def _write(self) -> None:
        rec, now = self._rec, self.clock.now
        if self._paces["hits"].due(now):
            rec.emit(Hits(now, 10**8, [[stack, stack % 12, 3] for stack in range(40)]))
        if self._paces["tick"].due(now):
            rec.emit(Tick(now, 2**31, 10**15, 2**31, 2**40, 2**40))
        self._file.write("".join([row_text(row) for row in rec.rows] + self._text.text(rec.steps)))
        rec.rows.clear()
        rec.steps.clear()
