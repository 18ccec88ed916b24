"""Whole runs of two arms, abreast: they take turns and keep level in their work, so that noise hits both alike.

Unlike :mod:`hotlap.trial.compare`, which stops when it knows a ratio, this goes on to the scripts' own ends (or to
where they are to be stopped), and every step counts. A turn lasts until the arm has done as much work as is due; the
slower arm needs some seconds for it, longer and longer in a long run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hotlap.records.rows import Step
from hotlap.records.seed_proof import Stop
from hotlap.trial import design, neighbours
from hotlap.trial.arm import Arm
from hotlap.trial.awake import awake_s
from hotlap.trial.budget import Budget
from hotlap.trial.pauses import Cycle, find_cycle
from hotlap.trial.progress import OnProgress
from hotlap.trial.runner import ArmEnded, Runner
from hotlap.trial.stopping import REACHED_OVER, stops_at
from hotlap.trial.windows import Turn

__all__ = ["ArmEnd", "Decided", "run_abreast"]

TURN_S = 3.0
"""Shortest turn of the slower arm: long against a freeze (milliseconds), short against drift (minutes)."""
TURN_FRAC = 0.01
"""Share of its run so far that a turn of the slower arm lasts: a run of hours needs no thousands of turns."""
PATIENCE = 3.0
"""An arm that has not reached the loss in so many times the other's time is stopped."""
SAME_BATCH = 0.01
"""Steps whose samples differ by less than this share are the same work."""
Decided = Callable[[Mapping[str, Sequence[Step]]], bool]
"""Whether the runs so far decide the matter; asked after every round of turns, while both arms are frozen."""


@dataclass(frozen=True)
class ArmEnd:
    """How an arm's run ended."""

    status: Literal["finished", "stopped", "failed"]
    reason: str
    at: int
    """Monotonic nanoseconds."""


@dataclass
class Ends:
    """What :func:`run_abreast` gives back."""

    ends: dict[str, ArmEnd]
    turns: list[Turn]
    startup_s: dict[str, float]
    cycle: Cycle
    """Of the pauses of ``baseline``; turns hold whole ones from where it was found."""


def run_abreast(
    arms: Mapping[str, Arm],
    stop: Stop,
    budget: Budget,
    on_progress: OnProgress,
    decided: Decided,
    *,
    one_at_a_time: bool = False,
) -> Ends:
    """Run ``baseline`` and ``candidate`` to their ends; the first of ``arms`` is launched first.

    A crash or a hang is an end like others. Both arms are left frozen or ended, for the caller to stop; on any
    exception, KeyboardInterrupt too, they are ended before it goes on.
    """
    run = _Abreast(arms, stop, Runner(budget, on_progress), decided)
    try:
        if one_at_a_time:
            run.one_after_the_other()
        else:
            run.side_by_side()
    except BaseException:
        for arm in arms.values():
            arm.stop()
        raise
    return Ends(run.ends, run.turns, run.startup_s, run.cycle)


class _Abreast:
    def __init__(self, arms: Mapping[str, Arm], stop: Stop, runner: Runner, decided: Decided) -> None:
        self.arms = dict(arms)
        self.stop = stop
        self.runner = runner
        self.decided = decided
        self.ends: dict[str, ArmEnd] = {}
        self.turns: list[Turn] = []
        self.startup_s: dict[str, float] = {}
        self.cycle = Cycle()
        self.each = dict.fromkeys(arms, 1.0)
        """The work of one step: its samples where the arms' steps hold different ones, else 1."""
        self.looked = dict.fromkeys(arms, 0)
        """Rows that were looked at for the place to stop."""
        self.there: set[str] = set()
        """Arms that have come to it."""

    def side_by_side(self) -> None:
        for label in self.arms:
            self.first_step(label)
        order = list(self.arms)
        while self.open():
            due = self.due()
            for label in order:
                self.turn(label, due)
            self.freeze_all()
            order.reverse()
            if self.enough():
                return self.stop_open()

    def one_after_the_other(self) -> None:
        for label, arm in self.arms.items():
            self.first_step(label)
            while label in self.open():
                self.turn(label, self.due())
                arm.freeze()
                if self.enough():
                    return self.stop_open()
            arm.stop()

    def open(self) -> list[str]:
        """The arms that go on."""
        return [label for label in self.arms if label not in self.ends]

    def first_step(self, label: str) -> None:
        self.freeze_all()
        try:
            took = self.runner.to_first_step(self.arms[label])
        except ArmEnded as ended:
            self.ended(label, ended)
        else:
            if took is not None:
                self.startup_s[label] = took

    def turn(self, label: str, due: float) -> None:
        """Let an arm run until it has done what is due, or ends."""
        if label in self.ends:
            return
        arm = self.arms[label]
        self.freeze_all(but=arm)
        thawed = arm.frozen
        before, begin = neighbours.look(arm.cpu_s()), time.monotonic_ns()
        self.runner.go_on(arm)
        try:
            while self.work(label) < due and not self.over(label):
                self.runner.look(arm, "measure", self.note())
        except ArmEnded as ended:
            self.ended(label, ended)
        else:
            if self.over(label):
                arm.freeze()
                self.ends[label] = ArmEnd("stopped", "", time.monotonic_ns())
        load = neighbours.between(before, neighbours.look(arm.cpu_s())) if label not in self.ends else None
        taken, idle = (load.others, load.idle) if load is not None else (None, None)
        self.turns.append(Turn(label, begin, time.monotonic_ns(), thawed, taken, idle))

    def ended(self, label: str, ended: ArmEnded) -> None:
        arm = self.arms[label]
        trainer = arm.poll()
        at = trainer.ended_at if trainer is not None and trainer.ended_at is not None else time.monotonic_ns()
        self.ends[label] = ArmEnd("finished" if ended.finished else "failed", ended.reason, at)

    def over(self, label: str) -> bool:
        """Whether an arm has come to where it is to be stopped."""
        trainer = self.arms[label].poll()
        if label not in self.there and self.stop.early and trainer is not None:
            new = trainer.steps[max(0, self.looked[label] - REACHED_OVER) :]
            self.looked[label] = len(trainer.steps)
            if stops_at(self.stop, new, trainer.events) is not None:
                self.there.add(label)
        return label in self.there

    def enough(self) -> bool:
        """Whether what is left of the runs can be spared."""
        decided = self.decided({label: self.rows(label) for label in self.arms})  # at the end too: it may look into it
        if decided or not self.open():
            return True
        for label, end in self.ends.items():
            for other in self.open():
                if end.status == "failed" and self.steps(other) > self.steps(label) + 1:
                    return True  # where one crashed, the other goes on
                reached = self.stop.loss is not None and end.status == "stopped"
                if reached and self.awake(other) > PATIENCE * self.awake(label):
                    return True
        return False

    def stop_open(self) -> None:
        for label in self.open():
            self.arms[label].freeze()
            self.ends[label] = ArmEnd("stopped", "decided", time.monotonic_ns())

    def due(self) -> float:
        """The work that every arm is to have done after its next turn."""
        self.weigh()
        if self.cycle.steps == 1:
            self.cycle = find_cycle(self.rows("baseline"))
        going = [label for label in self.open() if self.steps(label)]
        dropped = self.runner.budget.drop_steps
        share, least = min(self.share(x, dropped) for x in going), self.cycle.whole(1, dropped)
        return max(map(self.work, going)) + max(share, least * max(self.each.values()))

    def share(self, label: str, left_out: int) -> float:
        """The work of an arm in a turn of the slower arm's length, and of whole cycles."""
        ran_s = self.awake(label) - self.startup_s.get(label, 0.0)
        wanted_s = max(TURN_S, TURN_FRAC * ran_s)
        if ran_s > wanted_s:
            steps = self.steps(label) / ran_s * wanted_s
        else:
            step_s = design.typical_step_s(self.rows(label)[1:] or self.rows(label))  # the first one may have compiled
            steps = wanted_s / max(step_s, 1e-6)
        return self.each[label] * max(1.0, self.cycle.whole(steps, left_out))

    def weigh(self) -> None:
        """Whether the arms' steps hold different samples."""
        samples = {label: sum(row.s for row in self.rows(label)) / max(1, self.steps(label)) for label in self.arms}
        low, high = min(samples.values()), max(samples.values())
        self.each = samples if low > 0 and high > (1 + SAME_BATCH) * low else dict.fromkeys(self.arms, 1.0)

    def work(self, label: str) -> float:
        """What an arm has done."""
        return self.steps(label) * self.each[label]

    def rows(self, label: str) -> list[Step]:
        trainer = self.arms[label].poll()
        return [] if trainer is None else trainer.steps

    def steps(self, label: str) -> int:
        rows = self.rows(label)
        return rows[-1].i + rows[-1].n if rows else 0

    def awake(self, label: str) -> float:
        """Seconds that an arm has run."""
        until = self.ends[label].at if label in self.ends else time.monotonic_ns()
        return awake_s(self.arms[label].thaws, [until])[0]

    def note(self) -> str:
        return ", ".join(f"{label} {self.steps(label)} steps" for label in self.arms)

    def freeze_all(self, but: Arm | None = None) -> None:
        for arm in self.arms.values():
            if arm is not but:
                arm.freeze()
