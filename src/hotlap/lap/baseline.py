"""The first run of a lap: the script as it is, watched long enough to be diagnosed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hotlap.diagnose.diagnose import TooFewSteps, diagnose
from hotlap.inject.run_script import module_of, name_of
from hotlap.lap.session import MOST_GROWN_S, Session
from hotlap.records.errors import HotlapError, NotAttached
from hotlap.records.findings import Findings
from hotlap.records.timeline import attach_errors
from hotlap.records.trials import NO_FIRST_STEP, OF_BASELINE, Trial
from hotlap.report import units
from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget
from hotlap.trial.pauses import find_cycle
from hotlap.trial.single import Outcome, run_until

__all__ = ["Baseline", "Unmeasurable", "check_baseline", "cut_off", "rediagnose", "run_baseline", "script_name"]

BASELINE_SHARE = 0.15
"""Share of the budget for the first run."""
LEAST_S = 13.0
"""Seconds of training wanted at least: something periodic (validation, checkpoints) should be among them."""
MIN_STEPS = 40
"""Steps wanted before anything is said (fewer only when the time is up)."""
FEW_STEPS = 16
"""With fewer steps, or than were asked for, the run goes on, up to ``SLOW_SHARE`` of the budget."""
SLOW_SHARE = 0.45
FEWEST_STEPS = 12
"""With fewer it goes on to the budget's end: eight have to be steady (diagnose/policy), and the first ones are not."""
HOPELESS = 1.5
"""Times the seconds there are: where the steps so far say that so many would be needed, no diagnosis is waited for.
First steps may be slower than those behind them."""


class Unmeasurable(HotlapError):
    """The script, as it is, does not train for long enough to be compared with anything."""


@dataclass
class Baseline:
    """The unmodified script: its arm (frozen, kept for comparisons) and what was found."""

    arm: Arm
    findings: Findings
    start_s: float = 0.0
    """From the launch to the end of the first step."""


def run_baseline(session: Session, arm: Arm) -> Baseline:
    """Run the script unmodified (``arm``) in the sandbox until it can be diagnosed, and freeze it.

    Raises HotlapError with the script's own reason when it ends, fails or hangs before enough steps.
    """
    session.stage = "diagnose"
    options = session.options
    run = partial(run_until, arm, Budget(first_step_s=options.first_step_s), on_progress=session.on_progress)
    outcome = run(steps=options.steps or MIN_STEPS, seconds=max(LEAST_S, options.budget_s * BASELINE_SHARE))
    start_s = outcome.startup_s
    if outcome.status == "enough":
        outcome = _longer(session, run, outcome)
    trainer = arm.poll()
    if trainer is not None:
        session.cycle = find_cycle(trainer.steps)
    try:
        findings = rediagnose(session, arm)
    except TooFewSteps:
        if outcome.status != "enough" or outcome.steps >= (options.steps or FEWEST_STEPS):
            raise
        raise _too_slow(session, outcome.steps, start_s or 0.0) from None
    if findings is None:
        why = outcome.reason or "no optimiser step was seen"
        crashed = outcome.status == "failed" and NO_FIRST_STEP not in why and arm.exit_code
        errors = attach_errors(arm.spec.timeline_dir)
        if errors and not crashed:  # a script's own crash comes first: it may have been a helper that was shut out
            raise NotAttached(errors[0])
        if NO_FIRST_STEP in why:
            raise HotlapError(
                f"Nothing to diagnose: the script made {why.removeprefix('hang: ')}.",
                f"A larger --budget waits for longer. The script's output is in {arm.spec.output}.",
            )
        if crashed:
            raise HotlapError(
                f"Nothing to diagnose: the script {why}.",
                f"Its output, traceback included, is in {arm.spec.output}. Does the command work without Hotlap?",
            )
        raise HotlapError(
            f"Nothing to diagnose: {why}.",
            f"The script's output is in {arm.spec.output}. Hotlap watches `optimizer.step()` in Python processes below "
            "the command; `python -I`/`-E` closes that door.",
        )
    session.step_s = findings.throughput.step_s
    return Baseline(arm, findings, start_s or 0.0)


def _longer(session: Session, run: Callable[..., Outcome], outcome: Outcome) -> Outcome:
    """More of a run that was stopped before all was seen that it should show."""
    options = session.options
    ran = outcome.wall_s - (outcome.startup_s or 0.0)
    if options.steps is None and ran < LEAST_S:
        return run(seconds=LEAST_S - ran)
    began_s, wanted = session.elapsed_s, options.steps or FEW_STEPS
    if outcome.steps < wanted and options.steps is not None and not options.budget_asked:
        outcome = run(steps=wanted)  # the user's own number, however long they take
    elif outcome.steps < wanted:  # slow steps: a diagnosis needs some, whatever share of the budget they take
        outcome = run(steps=wanted, seconds=session.left_s(SLOW_SHARE))
        if outcome.status == "enough" and outcome.steps < FEWEST_STEPS:
            outcome = _fewest(session, run, outcome)
    if not options.budget_asked:  # what follows needs time of its own
        session.extra_s += max(0.0, session.elapsed_s - max(began_s, SLOW_SHARE * options.budget_s))
    return outcome


def _fewest(session: Session, run: Callable[..., Outcome], outcome: Outcome) -> Outcome:
    """As many steps as a diagnosis needs; of a budget of our own, it is said, and not begun where it is hopeless."""
    if session.options.budget_asked:
        return run(steps=FEWEST_STEPS, seconds=session.left_s())
    step_s = session.elapsed_s / max(1, outcome.steps)  # the start counts as a step: it holds the first one
    needed_s, most_s = step_s * (FEWEST_STEPS - outcome.steps), MOST_GROWN_S - session.elapsed_s
    if needed_s > HOPELESS * most_s:
        return outcome
    session.listener.line(
        f"  Steps of about {units.seconds(step_s)} are slow: a diagnosis needs {FEWEST_STEPS}. That takes about "
        f"{math.ceil(needed_s / 60)} minutes more. (--budget TIME ends it earlier.)"
    )
    session.extra_s += needed_s  # the budget that is told
    outcome = run(steps=FEWEST_STEPS, seconds=most_s)
    session.extra_s -= needed_s
    return outcome


def _too_slow(session: Session, steps: int, start_s: float) -> HotlapError:
    """What is said of a script that made so few steps in all of the budget."""
    ran_s = session.elapsed_s - start_s
    needed_s = 60 * math.ceil((start_s + ran_s / steps * (FEWEST_STEPS + 1)) / 60)
    made = f"{steps} step{'' if steps == 1 else 's'}"
    return HotlapError(
        f"{script_name(session.options.command)} made {made} in {units.seconds(ran_s)}; "
        f"a diagnosis needs {FEWEST_STEPS}.",
        f"With --budget {needed_s // 60}m there is time for them.",
    )


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


def cut_off(session: Session, arm: Arm) -> Findings | None:
    """Findings of a first run that was cut off; None where it had made too few steps for any."""
    try:
        return rediagnose(session, arm)
    except TooFewSteps:
        return None


def script_name(command: list[str]) -> str:
    """What to call the script: ``train.py``, ``-m pkg.train`` or the command's first word."""
    name = name_of(command)
    return f"-m {name}" if name == module_of(command) else name
