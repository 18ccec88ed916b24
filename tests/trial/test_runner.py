"""A turn holds the steps that were asked of it, long ones as often as they come."""

from __future__ import annotations

import random
import statistics
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.records.rows import PHASES, Step
from hotlap.trial import neighbours, runner
from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget
from hotlap.trial.windows import to_window

POLL_S = 0.02


class SimulatedArm:
    """A script of given step times, and the clock that it and its runner live by."""

    def __init__(self, times_s: list[float]) -> None:
        self.now_ns = 1_000_000_000
        self.times = [round(s * 1e9) for s in times_s]
        self.steps: list[Step] = []
        self.frozen, self.alive, self.exit_code = False, True, None
        self.spec = SimpleNamespace(name="simulated")
        self.thaws: list[tuple[int, int | None]] = []
        self._begun, self._worked = self.now_ns, 0

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)
        if self.frozen:
            return
        self._worked += round(seconds * 1e9)
        while self._worked >= (lasts := self.times[len(self.steps)]):
            self._worked -= lasts
            end = self.now_ns - self._worked
            row = Step(i=len(self.steps), n=1, t=self._begun, w=end - self._begun, p=[None] * len(PHASES), s=1, m=1)
            self.steps.append(row)
            self._begun = end

    def thaw(self) -> None:
        self.frozen = False
        self.thaws.append((self.now_ns, None))

    def poll(self) -> SimulatedArm:
        return self

    def steps_done(self) -> int:
        return len(self.steps)

    n_steps = property(steps_done)

    def cpu_s(self) -> float:
        return 0.0


def test_rare_long_steps_are_counted_as_often_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that ended by the clock would nearly always end in a long step, which then belonged to no window."""
    rng = random.Random(3)
    times = [1.0 if rng.random() < 1 / 300 else 0.02 for _ in range(60_000)]
    arm = SimulatedArm(times)
    clock = SimpleNamespace(monotonic=lambda: arm.now_ns / 1e9, monotonic_ns=lambda: arm.now_ns, sleep=arm.sleep)
    monkeypatch.setattr(runner, "time", clock)
    monkeypatch.setattr(neighbours, "look", lambda _: None)
    monkeypatch.setattr(neighbours, "between", lambda *_: None)
    budget = Budget(poll_s=POLL_S, window_s=0.6, window_steps=3)
    turns = runner.Runner(budget, lambda _: None)
    arm.sleep(1.0)
    windows: list[Any] = []
    for number in range(600):
        turn = turns.turn(cast(Arm, arm), "baseline", float("inf"))
        windows.append(to_window(turn, arm.steps, budget.drop_steps, 3, 1.0))
        if number % 2:
            arm.frozen = True
            arm.sleep(1.3)
    measured = sum(w.steady_s * w.steps for w in windows) / sum(w.steps for w in windows)
    assert measured == pytest.approx(statistics.fmean(times[: len(arm.steps)]), rel=0.05)
