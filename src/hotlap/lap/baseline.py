"""The first run of a lap: the script as it is, watched long enough to be diagnosed."""

from __future__ import annotations

from dataclasses import dataclass

from hotlap.diagnose.diagnose import diagnose
from hotlap.inject.run_script import module_of, script_of
from hotlap.lap.session import Session
from hotlap.records.errors import HotlapError
from hotlap.records.findings import Findings
from hotlap.records.trials import NO_FIRST_STEP, OF_BASELINE, Trial
from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget
from hotlap.trial.pauses import find_cycle
from hotlap.trial.single import run_until

__all__ = ["Baseline", "Unmeasurable", "check_baseline", "rediagnose", "run_baseline", "script_name"]

BASELINE_SHARE = 0.15
"""Share of the budget for the first run."""
LEAST_S = 13.0
"""Seconds of training wanted at least: something periodic (validation, checkpoints) should be among them."""
MIN_STEPS = 40
"""Steps wanted before anything is said (fewer only when the time is up)."""
FEW_STEPS = 16
"""With fewer steps the run goes on, up to ``SLOW_SHARE`` of the budget."""
SLOW_SHARE = 0.45


class Unmeasurable(HotlapError):
    """The script, as it is, does not train for long enough to be compared with anything."""


@dataclass
class Baseline:
    """The unmodified script: its arm (frozen, kept for comparisons) and what was found."""

    arm: Arm
    findings: Findings
    start_s: float = 0.0
    """From the launch to the end of the first step."""


def run_baseline(session: Session) -> Baseline:
    """Run the script unmodified in the sandbox until it can be diagnosed, and freeze it.

    Raises HotlapError with the script's own reason when it ends, fails or hangs before enough steps.
    """
    session.stage = "diagnose"
    options = session.options
    arm = session.arm("baseline")
    budget = Budget(first_step_s=session.options.first_step_s)
    longest = max(LEAST_S, options.budget_s * BASELINE_SHARE)
    wanted = options.steps or MIN_STEPS
    outcome = run_until(arm, budget, steps=wanted, seconds=longest, on_progress=session.on_progress)
    start_s = outcome.startup_s
    ran = outcome.wall_s - (start_s or 0.0)
    if outcome.status == "enough" and options.steps is None:
        if ran < LEAST_S:
            outcome = run_until(arm, budget, seconds=LEAST_S - ran, on_progress=session.on_progress)
        elif outcome.steps < FEW_STEPS:  # slow steps: a diagnosis needs some, whatever share of the budget they take
            left = session.left_s(SLOW_SHARE)
            outcome = run_until(arm, budget, steps=FEW_STEPS, seconds=left, on_progress=session.on_progress)
    trainer = arm.poll()
    if trainer is not None:
        session.cycle = find_cycle(trainer.steps)
    findings = rediagnose(session, arm)
    if findings is None:
        why = outcome.reason or "no optimiser step was seen"
        if NO_FIRST_STEP in why:
            raise HotlapError(
                f"Nothing to diagnose: the script made {why.removeprefix('hang: ')}.",
                f"A larger --budget waits for longer. The script's output is in {arm.spec.output}.",
            )
        if outcome.status == "failed" and arm.exit_code:
            raise HotlapError(
                f"Nothing to diagnose: the script {why}.",
                f"Its output, traceback included, is in {arm.spec.output}. Does the command work without Hotlap?",
            )
        raise HotlapError(
            f"Nothing to diagnose: {why}.",
            f"The script's output is in {arm.spec.output}. Hotlap watches `optimizer.step()` in Python processes below "
            "the command; `python -I`/`-E` closes that door.",
        )
    return Baseline(arm, findings, start_s or 0.0)


def check_baseline(trial: Trial) -> None:
    """Raises Unmeasurable where a trial failed by the script itself: every other trial would end the same way."""
    why = trial.reason.removeprefix(OF_BASELINE)
    over = why.startswith("script ended")
    if trial.status != "failed" or not (over or trial.reason.startswith(OF_BASELINE)):
        return
    hint = "Let it train for longer: more epochs, or more data." if over else "Does the command work without Hotlap?"
    raise Unmeasurable(f"Nothing can be tried: the script {why.removeprefix('script ')}.", hint)


def rediagnose(session: Session, arm: Arm) -> Findings | None:
    """Findings of an arm as far as it has run; None when it has not made a step."""
    timeline = session.timeline(arm)
    if timeline is None:
        return None
    return diagnose(timeline, session.machine, script_name(session.options.command))


def script_name(command: list[str]) -> str:
    """What to call the script: ``train.py``, ``-m pkg.train`` or the command's first word."""
    module = module_of(command)
    return f"-m {module}" if module is not None else script_of(command) or command[0]
