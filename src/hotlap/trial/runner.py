"""Runs an arm for a while: to its first step, until it is warm, for a turn. Watches for its end and for hangs."""

from __future__ import annotations

import time

from hotlap.trial import design, neighbours
from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget
from hotlap.trial.progress import OnProgress, Progress
from hotlap.trial.windows import Turn

__all__ = ["ArmEnded", "Runner"]


class ArmEnded(Exception):
    """An arm ended, or no longer makes steps."""

    def __init__(self, arm: Arm, reason: str, *, finished: bool) -> None:
        super().__init__(reason)
        self.arm = arm
        self.reason = reason
        self.finished = finished
        """The script came to its own end with exit status 0."""


class Runner:
    """Waits beside a running arm, and tells the display."""

    def __init__(self, budget: Budget, on_progress: OnProgress) -> None:
        self.budget = budget
        self.on_progress = on_progress
        self.began = time.monotonic()
        self._seen = 0
        self._news_at = 0.0

    def go_on(self, arm: Arm) -> None:
        """Start or thaw an arm, and begin to watch it."""
        if arm.frozen:
            arm.thaw()
        elif not arm.alive:
            arm.start()
        self._seen = arm.steps_done()
        self._news_at = time.monotonic()

    def look(self, arm: Arm, phase: str, note: str = "") -> None:
        """One look at a running arm. Raises ArmEnded when it ended or hangs."""
        time.sleep(self.budget.poll_s)
        alive = arm.alive  # before the rows are read, so that an arm's last rows are never missed
        steps = arm.steps_done()
        now = time.monotonic()
        if steps != self._seen:
            self._seen, self._news_at = steps, now
        self.on_progress(Progress(phase, arm.spec.name, now - self.began, self.budget.seconds, steps, note))
        if not alive:
            raise ArmEnded(arm, arm.failure(), finished=arm.exit_code == 0)
        trainer = arm.poll()
        limit = self.budget.first_step_s
        if trainer is not None and trainer.n_steps > 1:  # the second step may compile again
            limit = self.budget.hang_limit_s(design.typical_step_s(trainer.steps))
        if now - self._news_at > limit:
            what = f"no step for {limit:.0f} s" if steps else f"no first step within {limit:.0f} s"
            raise ArmEnded(arm, f"hang: {what}", finished=False)

    def to_first_step(self, arm: Arm) -> float | None:
        """Go on until the first step is done; seconds from launch, when it was launched here."""
        launched = not arm.alive
        self.go_on(arm)
        while arm.steps_done() == 0:
            self.look(arm, "start")
        if not launched or arm.started_at is None:
            return None
        trainer = arm.poll()
        if trainer is None:
            return None
        first = trainer.steps[0]
        return (first.t + first.w) / 1e9 - arm.started_at

    def to_warm(self, arm: Arm) -> str | None:
        """Go on until the step time is steady; a note when it never was."""
        self.go_on(arm)
        until = time.monotonic() + self.budget.warmup_s
        while True:
            trainer = arm.poll()
            if trainer is not None and design.is_steady(trainer.steps, self.budget):
                return None
            if time.monotonic() > until and trainer is not None and trainer.n_steps >= self.budget.warmup_steps:
                return f"{arm.spec.name}: step time still falling after {self.budget.warmup_s:.0f} s of warm-up"
            self.look(arm, "warm-up")

    def turn(self, arm: Arm, label: str, drop: int, note: str = "") -> Turn:
        """Let an arm run for one turn. It is left running: whoever is next freezes it."""
        thawed = arm.frozen
        self.go_on(arm)
        trainer = arm.poll()
        step_s = design.typical_step_s(trainer.steps) if trainer is not None else 0.0
        lasts = design.turn_s(step_s, drop if thawed else 0, self.budget)
        before = neighbours.look(arm.cpu_s())
        begin = time.monotonic_ns()
        while (time.monotonic_ns() - begin) / 1e9 < lasts:
            self.look(arm, "measure", note)
        load = neighbours.between(before, neighbours.look(arm.cpu_s()))
        end = time.monotonic_ns()
        taken, idle = (load.others, load.idle) if load is not None else (None, None)
        return Turn(label, begin, end, thawed, taken, idle)
