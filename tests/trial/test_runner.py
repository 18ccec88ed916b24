"""A turn holds the steps that were asked of it, long ones as often as they come."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.records.rows import PHASES, Step
from hotlap.trial import neighbours, runner
from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget
from hotlap.trial.windows import openings, to_window

BUDGET = Budget(poll_s=0.02, window_s=0.6, window_steps=3)


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


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[float]], tuple[SimulatedArm, runner.Runner]]:
    def make(times_s: list[float]) -> tuple[SimulatedArm, runner.Runner]:
        arm = SimulatedArm(times_s)
        clock = SimpleNamespace(monotonic=lambda: arm.now_ns / 1e9, monotonic_ns=lambda: arm.now_ns, sleep=arm.sleep)
        monkeypatch.setattr(runner, "time", clock)
        monkeypatch.setattr(neighbours, "look", lambda _: None)
        monkeypatch.setattr(neighbours, "between", lambda *_: None)
        return arm, runner.Runner(BUDGET, lambda _: None)

    return make


def test_rare_long_steps_are_counted_as_often_as_they_come(simulated: Any) -> None:
    """A turn that ended by the clock would nearly always end in a long step, which then belonged to no window."""
    rng = random.Random(3)
    times = [1.0 if rng.random() < 1 / 300 else 0.02 for _ in range(60_000)]
    arm, turns = simulated(times)
    arm.sleep(1.0)
    windows: list[Any] = []
    for number in range(600):
        turn = turns.turn(cast(Arm, arm), "baseline", float("inf"))
        windows.append(to_window(turn, arm.steps, BUDGET.drop_steps, 3, 1.0))
        if number % 2:
            arm.frozen = True
            arm.sleep(1.3)
    measured = sum(w.steady_s * w.steps for w in windows) / sum(w.steps for w in windows)
    assert measured == pytest.approx(statistics.fmean(times[: len(arm.steps)]), rel=0.05)


def test_an_arm_that_becomes_slower_altogether_does_not_take_all_the_time(simulated: Any) -> None:
    arm, turns = simulated([0.002] * 600 + [0.1] * 6000)
    arm.sleep(1.1)
    began = arm.now_ns
    turn = turns.turn(cast(Arm, arm), "baseline", float("inf"))
    assert (arm.now_ns - began) / 1e9 < 4 * BUDGET.window_s
    assert to_window(turn, arm.steps, BUDGET.drop_steps, 3, 1.0).dropped is None


def test_starts_of_short_epochs_are_told_the_same_however_far_the_last_is() -> None:
    """A window that was long enough when its turn ended is so when it is judged."""
    rows = SimulatedArm([0.1] * 60)
    rows.sleep(5.0)
    four = [replace(row, lo_n=int(row.i % 4 == 0)) for row in rows.steps]
    assert all([row.i for row in openings(four[:n])] == list(range(0, n, 4)) for n in range(5, 40))
    assert openings([replace(row, lo_n=int(row.i % 2 == 0)) for row in rows.steps[:9]]) == []
