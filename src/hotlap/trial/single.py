"""One arm alone, until it has done enough: the diagnosis run, a throw-away run with something taken away."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget
from hotlap.trial.progress import OnProgress, nowhere
from hotlap.trial.runner import ArmEnded, Runner

__all__ = ["Outcome", "run_until"]


@dataclass(frozen=True)
class Outcome:
    """How a run went."""

    status: Literal["enough", "finished", "failed"]
    """``enough``: steps or seconds reached, the arm is frozen. ``finished``: the script came to its end."""
    reason: str
    steps: int
    wall_s: float
    startup_s: float | None
    exit_code: int | None


def run_until(
    arm: Arm,
    budget: Budget,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    on_progress: OnProgress = nowhere,
) -> Outcome:
    """Run until ``steps`` steps, ``seconds`` after the first step, or the script's end; whichever comes first.

    The arm is started (or thawed) and left frozen. A crash or hang is an outcome, not an exception; on any exception,
    KeyboardInterrupt too, the arm is ended.
    """
    runner = Runner(budget, on_progress)
    began = time.monotonic()
    startup_s: float | None = None

    def outcome(status: Literal["enough", "finished", "failed"], reason: str) -> Outcome:
        return Outcome(status, reason, arm.steps_done(), time.monotonic() - began, startup_s, arm.exit_code)

    try:
        startup_s = runner.to_first_step(arm)
        first = time.monotonic()
        while True:
            if steps is not None and arm.steps_done() >= steps:
                break
            if seconds is not None and time.monotonic() - first >= seconds:
                break
            runner.look(arm, "measure")
    except ArmEnded as ended:
        if ended.finished:
            return outcome("finished", ended.reason)
        failed = outcome("failed", ended.reason)
        arm.stop()
        return failed
    except BaseException:
        arm.stop()
        raise
    arm.freeze()
    return outcome("enough", "")
