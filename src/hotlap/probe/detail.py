"""Which steps are measured in full, so that watching short steps costs next to nothing.

The first steps are, and all steps that are long. Of short ones a random few are: in the others the probes of forwards,
backwards, updates and frequent calls look away, and what they would have measured stays unmeasured in the row of these
steps. The wall time, the data wait, validations, checkpoints and garbage collections are measured in every step. A
step in which an epoch or a validation begins has a row of its own, and is watched from there on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from hotlap.probe.context import Context
from hotlap.probe.hook_points import HookPoints
from hotlap.probe.loader import Loads
from hotlap.probe.recorder import (
    ALL_TIMED,
    BACKWARD,
    FORWARD,
    H2D,
    LOGGING,
    OPTIMIZER,
    RESIDUAL,
    SYNC,
    ZERO_GRAD,
    Recorder,
)
from hotlap.records.rows import PHASES

__all__ = ["LEARN", "Detail", "install"]

LEARN = 101
"""Steps at first that are all measured in full; the looks at steps 2 to 100 are among them."""

BUDGET_FRAC = 0.001
"""Of the training time, what measuring steps in full may take on top of measuring them in brief."""

FULL_NS = 40_000
"""What a step measured in full takes longer than one in brief, where steps take a millisecond or two. Prior."""

CALL_NS = 3_000
"""What timing one more sync, print or copy takes, about."""

RARE_CALLS = 0.1
"""Syncs (or prints, or copies) per step, up to which each of them is timed in every step."""

MOST = 64
"""Steps in one row in brief, at most twice as many: a row must not hide when things changed."""

_NEVER = frozenset((FORWARD, BACKWARD, OPTIMIZER, ZERO_GRAD, RESIDUAL))
_IF_RARE = frozenset((LOGGING, SYNC, H2D))


class Detail:
    """Plans the steps to come after each that was measured in full, and keeps the row of those in brief."""

    def __init__(self, rec: Recorder, points: HookPoints) -> None:
        self._rec = rec
        self._points = points
        self._random = random.Random(time.monotonic_ns())
        self.has_fresh: Callable[[], bool] = lambda: False
        """Whether a pass through a loader has begun of which no batch was trained on yet."""
        self.never = False
        """All steps are measured in full (a loop that the short way does not serve)."""
        self.forget()

    def forget(self) -> None:
        """Begin anew: nothing was learned yet."""
        rec = self._rec
        rec.brief = False
        rec.skips = ALL_TIMED
        rec.calls = [0] * len(PHASES)
        rec.briefly = 0
        self.open = False
        self._start = self._steps = self._most = self._longest = 0
        self._acc = [0] * len(PHASES)
        self._samples = self._micro = 0
        """As they were when the row's last step ended, as is ``_acc``."""
        self._skips = ALL_TIMED
        self._mean_ns = 0

    def after_full(self, index: int, wall: int, now: int) -> None:
        """A step was measured in full and has ended: how many now go in brief?"""
        mean = self._mean_ns
        self._mean_ns = mean + (wall - mean) // 8 if mean else wall
        if index < LEARN - 1 or self.never:
            return
        rec, points = self._rec, self._points
        most = min(self._gap(index + 1 - rec.briefly), rec.next_look - index - 1)
        if (
            most <= 0
            or points.validating
            or points.around_forward
            or points.around_backward
            or points.before_step
            or rec.cur is not None
            or self.has_fresh()
        ):
            return
        self._begin(now, most)
        rec.skips = self._skips
        rec.brief = True

    def _begin(self, start: int, most: int) -> None:
        self._start, self._steps, self._most, self._longest = start, 0, most, 0
        self.open = True

    def _gap(self, full_steps: int) -> int:
        """Steps to measure in brief, drawn at random, since a fixed number would fall into step with the script."""
        calls = self._rec.calls
        rates = {phase: calls[phase] / full_steps for phase in _IF_RARE}
        self._skips = tuple(p in _NEVER or rates.get(p, 0.0) > RARE_CALLS for p in range(len(PHASES)))
        cost = FULL_NS + CALL_NS * sum(rates.values())
        mean = min(float(MOST), cost / (BUDGET_FRAC * max(1, self._mean_ns)))
        return int(2.0 * mean * self._random.random() + 0.5) if mean >= 1.0 else 0

    def close(self, now: int) -> None:
        """A step of a row in brief ends."""
        rec = self._rec
        index = rec.step_index
        wall = now - (rec.step_start or now)
        if wall > self._longest:
            self._longest = wall
        rec.step_start = now
        rec.step_index = index + 1
        self._steps = steps = self._steps + 1
        if steps >= self._most:
            self.open = rec.brief = False
            rec.skips = ALL_TIMED
            self._row(now)
        else:
            self._acc, self._samples, self._micro = rec.acc[:], rec.samples, rec.micro
        if rec.on_step_end:
            rec.tell_step_end(index)

    def tear(self) -> None:
        """Something rare begins (or the run ends): the step that goes on gets a row of its own, and is watched on."""
        rec = self._rec
        start = rec.step_start
        if not rec.brief or start is None:
            return
        rec.brief = False
        rec.skips = ALL_TIMED
        if self._steps:
            rest = [now - then for now, then in zip(rec.acc, self._acc, strict=True)]
            samples, micro = rec.samples - self._samples, rec.micro - self._micro
            rec.acc, rec.samples, rec.micro = self._acc, self._samples, self._micro
            self._row(start)
            rec.acc, rec.samples, rec.micro = rest, samples, micro
        self._begin(start, 1)

    def _row(self, end: int) -> None:
        rec, steps, wall = self._rec, self._steps, end - self._start
        rec.briefly += steps
        rec.add_row(rec.step_index - steps, self._start, wall, steps, self._longest, self._skips)
        self._mean_ns += (wall // steps - self._mean_ns) // 2


def install(ctx: Context, loads: Loads) -> Detail:
    """Have the recorder ask which steps to measure in full. In a trial all are: proofs read the loss of each."""
    found = ctx.rec.detail = Detail(ctx.rec, ctx.points)
    found.has_fresh = loads.has_fresh
    found.never = ctx.call.mode == "trial"
    return found
