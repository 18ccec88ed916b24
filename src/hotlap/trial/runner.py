"""Runs an arm for a while: to its first step, until it is warm, for a turn. Watches for its end and for hangs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hotlap.records.rows import Step
from hotlap.records.trials import NO_FIRST_STEP
from hotlap.trial import design, neighbours
from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget
from hotlap.trial.progress import OnProgress, Progress
from hotlap.trial.windows import Turn, kept_steps, openings

__all__ = ["ArmEnded", "Runner"]


class ArmEnded(Exception):
    """An arm ended, or no longer makes steps."""

    def __init__(self, arm: Arm, reason: str, *, finished: bool) -> None:
        super().__init__(reason)
        self.arm = arm
        self.reason = reason
        self.finished = finished
        """The script came to its own end with exit status 0."""


@dataclass
class _Quiet:
    """How long an arm has run without a new step."""

    steps: int = -1
    seconds: float = 0.0
    looked_at: float = 0.0
    cpu_s: float | None = None
    """CPU time when half of the patience was gone."""


BUSY_CORES = 0.1
"""An arm that uses more CPU than this works on something, if not on steps."""
BUSY_PATIENCE = 10.0
"""How many times longer a working arm is waited for."""
SLOWER = 3.0
"""A turn that takes so many times its time is asked for the steps of the pace that it shows itself."""
DUE_POLL_S = 0.03
"""Between two looks at a turn that is due."""
LONG_STEP_S = 5.0
"""A second step that takes longer is told, where a lever compiles."""


class Runner:
    """Waits beside a running arm, and tells the display."""

    def __init__(self, budget: Budget, on_progress: OnProgress) -> None:
        self.budget = budget
        self.on_progress = on_progress
        self.began = time.monotonic()
        self._quiet: dict[Arm, _Quiet] = {}

    def go_on(self, arm: Arm) -> None:
        """Start or thaw an arm, and begin to watch it."""
        if arm.frozen:
            arm.thaw()
        elif not arm.alive:
            arm.start()
        quiet = self._quiet.setdefault(arm, _Quiet())
        quiet.looked_at = time.monotonic()

    def look(self, arm: Arm, phase: str, note: str = "", after_s: float | None = None) -> None:
        """One look at a running arm, ``after_s`` from now. Raises ArmEnded when it ended or hangs."""
        time.sleep(self.budget.poll_s if after_s is None else after_s)
        alive = arm.alive  # before the rows are read, so that an arm's last rows are never missed
        steps = arm.steps_done()
        now = time.monotonic()
        note = note or self._compiling(arm, steps)
        self.on_progress(Progress(phase, arm.spec.name, now - self.began, self.budget.seconds, steps, note))
        if not alive:
            raise ArmEnded(arm, arm.failure(), finished=arm.exit_code == 0)
        self._check_hang(arm, steps, now)

    def _compiling(self, arm: Arm, steps: int) -> str:
        """What an arm does whose levers compile after its first step, and that shows no second one for long."""
        seconds = self._quiet[arm].seconds
        waits = steps == 1 and seconds >= LONG_STEP_S and self.budget.second_step_s > 0
        return f"{seconds:.0f} s in its second step, compiling it seems" if waits else ""

    def _check_hang(self, arm: Arm, steps: int, now: float) -> None:
        """Time without a step counts while the arm runs, over all of its turns."""
        quiet = self._quiet[arm]
        quiet.seconds += now - quiet.looked_at
        quiet.looked_at = now
        if steps != quiet.steps:
            quiet.steps, quiet.seconds, quiet.cpu_s = steps, 0.0, None
            return
        trainer = arm.poll()
        limit = self.budget.first_step_s
        under_way = trainer is not None and trainer.n_steps > 1  # the second step may compile again
        if trainer is not None and under_way:
            limit = self.budget.hang_limit_s(design.typical_step_s(trainer.steps))
        if quiet.seconds > limit / 2 and quiet.cpu_s is None:
            quiet.cpu_s = arm.cpu_s()
        if quiet.seconds <= limit or quiet.cpu_s is None:
            return
        busy = (arm.cpu_s() - quiet.cpu_s) / (limit / 2) > BUSY_CORES
        longest = BUSY_PATIENCE * limit if under_way else self.budget.second_step_s if steps else limit
        if busy and quiet.seconds <= longest:
            return  # a long validation, say, or a compilation
        what = f"hang: no step for {quiet.seconds:.0f} s" if steps else f"hang: {NO_FIRST_STEP} {limit:.0f} s"
        if steps and not under_way and busy:
            what = f"no second step within {quiet.seconds:.0f} s, while it computes: a compilation, perhaps"
        raise ArmEnded(arm, what, finished=False)

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

    def to_warm(self, arm: Arm, least_steps: int = 0, in_vain: Callable[[], bool] | None = None) -> str | None:
        """Go on until the step time is steady, ``least_steps`` at least, or until it is ``in_vain``; a note when it
        never was steady. A step that compiles, however long, is no part of the time that a warm-up may take."""
        self.go_on(arm)
        until = time.monotonic() + self.budget.warmup_s
        while True:
            trainer = arm.poll()
            if trainer is not None and design.is_steady(trainer.steps, self.budget, least_steps):
                return None
            if in_vain is not None and in_vain():
                return None
            longest_s = max((row.w / 1e9 for row in trainer.steps), default=0.0) if trainer is not None else 0.0
            late = time.monotonic() > until + longest_s
            if late and trainer is not None and trainer.n_steps >= self.budget.warmup_steps:
                return f"{arm.spec.name}: step time still falling after {self.budget.warmup_s:.0f} s of warm-up"
            self.look(arm, "warm-up")

    def turn(self, arm: Arm, label: str, until: float, note: str = "") -> Turn:
        """Let an arm run for one turn: its time, and until its steps were seen or ``until`` (monotonic seconds).

        The turn is of a number of steps that is fixed before it: of a turn cut by the clock, the step that is cut is a
        long one more often than others, and pauses would hardly be counted. It is left running: whoever is next
        freezes it.
        """
        thawed = arm.frozen
        dropped = self.budget.drop_steps if thawed else 0
        self.go_on(arm)
        trainer = arm.poll()
        so_far = trainer.steps if trainer is not None else []
        lasts = design.turn_s(design.typical_step_s(so_far), dropped, self.budget)
        asked = design.turn_steps(design.pace_s(so_far, [at for at, _ in arm.thaws]), self.budget)
        before = neighbours.look(arm.cpu_s())
        began = time.monotonic()
        begin = time.monotonic_ns()
        end: int | None = None
        while True:
            now = time.monotonic()
            if now - began >= lasts:
                kept = self._kept(arm, begin, thawed)
                if now - began >= SLOWER * lasts:  # not in one long step: it has become slower altogether
                    asked = min(asked, design.turn_steps(design.typical_step_s(kept), self.budget))
                end = _end_of(kept, asked)
                if end is not None or now >= until:
                    break
            due_s = max(DUE_POLL_S, began + lasts - now)  # steps beyond those asked for are not counted
            self.look(arm, "measure", note, min(self.budget.poll_s, due_s))
        load = neighbours.between(before, neighbours.look(arm.cpu_s()))
        end = time.monotonic_ns() if end is None else end
        taken, idle = (load.others, load.idle) if load is not None else (None, None)
        return Turn(label, begin, end, thawed, taken, idle)

    def _kept(self, arm: Arm, begin: int, thawed: bool) -> list[Step]:
        """The rows since ``begin`` that a window will hold."""
        trainer = arm.poll()
        if trainer is None:
            return []
        so_far = Turn("", begin, time.monotonic_ns(), thawed)
        opening = {row.t for row in openings(trainer.steps)}
        return kept_steps(so_far, trainer.steps, self.budget.drop_steps, opening)


def _end_of(kept: Sequence[Step], asked: int) -> int | None:
    """When the last of so many steps ended; None where there are fewer."""
    counted = 0
    for row in kept:
        counted += row.n
        if counted >= asked:
            return row.t + row.w
    return None
