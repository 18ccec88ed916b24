"""One comparison of two arms, with its document written to the run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hotlap.lap import one_at_a_time
from hotlap.lap.session import Session
from hotlap.proof.per_sample import per_sample
from hotlap.proof.speedup import LEVEL, MIN_PAIRS, STEERING_LEVEL, ratio_interval
from hotlap.records.call import TRIAL_AHEAD
from hotlap.records.trials import Interval, Trial, Window
from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget
from hotlap.trial.compare import compare
from hotlap.trial.design import mean_turn_s, typical_step_s
from hotlap.trial.periodic import PeriodicStats

__all__ = ["LONG_SHARE", "Question", "measure", "took_away", "windows_of"]

TAKEN_AWAY = {
    "data": ("epoch_start",),
    "validation": ("validation",),
    "checkpoint": ("checkpoint",),
    "everything": ("epoch_start", "validation", "checkpoint"),
}
"""Kinds of periodic work that an ablation takes away."""
WINDOWS = Budget(window_s=0.6, window_steps=3, drop_steps=2, min_pairs=4, warmup_least_s=1.0)
"""Many short windows rather than a few long ones: pairs that lie close in time share their noise."""

SLOW_STEP_S = 1.0
"""A step that takes as long is slow: two of them are a window of several times the shortest, and what a thaw disturbs
(caches of the processor, its clock) is over within the first. Measured with the same windows as all others, a script
whose steps take two seconds had no lever tried in a quarter of an hour."""
SLOW_WINDOWS = replace(WINDOWS, window_steps=2, drop_steps=1, warmup_steps=3)

ALONE_WINDOW_S = 2.0
"""Shortest window where each two take a launch: those take so long that longer windows cost little."""
LONG_SHARE = 0.4
"""Of the budget that is left, what one comparison of slow steps may take."""


@dataclass(frozen=True)
class Question:
    """What a comparison is about, and how long it may take."""

    name: str
    seconds: float
    """Measuring time of both arms together; start-up and warm-up come on top."""
    setting: Mapping[str, Any] = field(default_factory=dict)
    precision: float = 0.03
    """Half-width of the interval, as a share of the ratio, at which the answer is good enough."""
    without: str | None = None
    """Ablation of the candidate: periodic work of that kind no longer happens there (which is checked)."""
    startup_s: float = 0.0
    """What the candidate's levers need to start (compilation); while they compute, what the session lends beyond it."""
    whole: bool = False
    """Use all of the time, whatever the interval says: several such comparisons make one answer."""
    warm_steps: int = 0
    """Steps after which the candidate's caches are warm."""
    candidate_first: bool = False
    """Launch and measure the candidate first; over several launches, every other time."""
    per_sample: bool = False
    """The arms' steps may hold different samples and their periodic work come round differently (a knob): compare
    samples per second, each arm at its own cadence."""


def measure(session: Session, incumbent: Arm, candidate: Arm, question: Question) -> Trial:
    """Alternate the two arms until the question is answered or its time is spent, and write the trial down.

    Where both do not fit into memory, or are ranks on several devices, they run one at a time, in this trial and in all
    that follow.
    """
    _mind_ranks(session, incumbent)
    trial = _compared(session, incumbent, candidate, question)
    if not session.one_at_a_time and _mind_ranks(session, incumbent):  # launched for the first time
        trial = _compared(session, incumbent, candidate, question)
    if not session.one_at_a_time and one_at_a_time.lacked_memory(trial):
        one_at_a_time.switch_to(session)
        alone = _compared(session, incumbent, candidate, question)
        if one_at_a_time.lacked_memory(alone):
            one_at_a_time.leave(session)
        else:
            one_at_a_time.tell(session)
            trial = alone
    session.folder.write(f"trials/{candidate.spec.name}.json", trial)
    return trial


def _mind_ranks(session: Session, arm: Arm) -> bool:
    """Whether the arm is seen now to be ranks on several devices: from here on one arm runs at a time."""
    if session.one_at_a_time or not one_at_a_time.several_devices(arm):
        return False
    one_at_a_time.switch_to(session)
    one_at_a_time.tell(session, one_at_a_time.RANKS)
    return True


def _compared(session: Session, incumbent: Arm, candidate: Arm, question: Question) -> Trial:
    without = question.without
    unknown: list[str] = []
    level = LEVEL if question.whole else STEERING_LEVEL

    def interval(windows: list[Window], periodic: PeriodicStats) -> Interval | None:
        if question.per_sample:
            return _in_samples(windows, periodic, unknown, level)
        gone = TAKEN_AWAY.get(without or "", ())
        candidate_s = sum(
            rate * periodic.seconds["candidate"].get(kind, 0.0)
            for kind, rate in periodic.per_step.items()
            if kind not in gone
        )
        return ratio_interval(windows, periodic.baseline_s, candidate_s, level)

    windows = windows_of(session, whole=question.whole)
    if session.one_at_a_time:
        session.stop_all_but(incumbent, candidate)
    trial = compare(
        incumbent,
        candidate,
        replace(
            windows,
            seconds=_seconds(session, incumbent, question, windows),
            precision=question.precision,
            stop_early=not question.whole,
            candidate_warmup_steps=question.warm_steps,
            candidate_first=question.candidate_first,
            first_step_s=session.options.first_step_s + question.startup_s,
            second_step_s=question.startup_s and question.startup_s + session.lendable_s("start"),
        ),
        interval,
        session.on_progress,
    )
    if without is not None and without != "everything" and trial.status == "measured":
        trial = _check_ablation(session, candidate, trial, without)
    if unknown and trial.interval is None:
        trial = replace(trial, status="refused", reason=unknown[-1])
    if candidate.spec.lever is not None and trial.status == "measured" and trial.changes <= 0:
        why = "nothing that it could change came up during the trial"
        trial = replace(trial, status="no-effect", reason=why, interval=None)
    return replace(trial, id=question.name, setting=dict(question.setting))


def windows_of(session: Session, *, whole: bool) -> Budget:
    """Windows that hold whole cycles of the script's own pauses, and fewer of its steps where those are slow. One of
    several launches (``whole``) decides nothing by itself, and counts with the fewest pairs that say how its windows
    vary."""
    steps, pairs = session.cycle.steps, MIN_PAIRS if whole else WINDOWS.min_pairs
    usual = SLOW_WINDOWS if session.step_s >= SLOW_STEP_S else WINDOWS
    return replace(
        usual,
        window_s=ALONE_WINDOW_S if session.one_at_a_time else usual.window_s,
        window_steps=max(usual.window_steps, steps),
        cycle_steps=steps,
        # after a thaw the host is through its first steps before the device is
        drop_steps=TRIAL_AHEAD + 1 if session.machine.accelerators else usual.drop_steps,
        min_pairs=pairs,
        one_at_a_time=session.one_at_a_time,
    )


def _seconds(session: Session, incumbent: Arm, question: Question, windows: Budget) -> float:
    """The measuring time: what was asked, or as long as slow steps or cycles need for the least pairs of windows.

    At most LONG_SHARE of what is left, and nothing more for an ablation: a cause may stay observed.
    """
    if question.without not in (None, "everything"):
        return question.seconds
    trainer = incumbent.poll()
    step_s = typical_step_s(trainer.steps) if trainer is not None else 0.0
    step_s = max(step_s, session.cycle.seconds / session.cycle.steps)
    least_s = 2 * windows.min_pairs * mean_turn_s(step_s, windows)
    return max(question.seconds, min(least_s, LONG_SHARE * session.left_s(1.0)))


def _in_samples(windows: list[Window], periodic: PeriodicStats, unknown: list[str], level: float) -> Interval | None:
    """The ratio of samples per second; ``unknown`` is told why there is none."""
    rows = per_sample(windows)
    baseline_s, candidate_s = periodic.sample_s("baseline"), periodic.sample_s("candidate")
    if rows is None or baseline_s is None or candidate_s is None:
        unknown.append("the samples of its steps are not known, and a knob may change them")
        return None
    return ratio_interval(rows, baseline_s, candidate_s, level)


def took_away(session: Session, arm: Arm, what: str) -> tuple[bool, str]:
    """Whether the ablation ``what`` took hold in an arm that ran, and why not."""
    timeline = session.timeline(arm)
    marks = [m for m in timeline.mark if m.kind == "ablation" and m.id == what] if timeline else []
    if any(m.state == "applied" for m in marks):
        return True, ""
    return False, marks[-1].why if marks and marks[-1].why else "it did not occur during the trial"


def _check_ablation(session: Session, candidate: Arm, trial: Trial, without: str) -> Trial:
    """An ablation that did not take hold has measured nothing."""
    took, why = took_away(session, candidate, without)
    return trial if took else replace(trial, status="no-effect", reason=why, interval=None)
