"""The roof: the same step on a resident batch, host work gone, with the numeric levers on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hotlap.diagnose.policy import DEFAULT
from hotlap.lap.measure import LONG_SHARE, Question, measure, took_away
from hotlap.lap.session import Session, validation_place
from hotlap.lever.contract import Refusal
from hotlap.lever.registry import levers
from hotlap.plan.order import SLOW_START_S
from hotlap.records.call import ABLATIONS
from hotlap.records.findings import Findings, Roof
from hotlap.records.plan import PRESERVES, Move
from hotlap.records.trials import Trial
from hotlap.report import units
from hotlap.trial.arm import Arm

__all__ = ["measure_roof", "numeric_moves"]

MEASURE_S = 11.0
HARDLY_MORE = 1.1
"""Below this ratio the roof is measured again without numeric levers, and the higher one is taken."""
UNCLEAR = 4.0
"""With an interval from half the ratio to twice as much, or wider, nothing is known."""
NO_ROOF = "with loading and host work taken away steps took longer than the script's own: something disturbed the trial"

STILL_LOADS = "its loading could not be taken away: its batches come from no DataLoader of torch's"


def numeric_moves(session: Session, findings: Findings, kept: Sequence[Move] = ()) -> list[Move]:
    """The numeric levers in ``kept``, or, before any was tried, the first setting of each that fits.

    Knobs in ``kept`` stay too: steps of the roof have to hold as many samples as the plan's.
    """
    known = levers()
    moves = [m for m in kept if m.is_knob or known[m.lever].NUMERIC]
    if kept:
        return moves
    options = session.options
    for lever in known.values():
        if not lever.NUMERIC or lever.PRESERVES not in options.allow or lever.ID in options.skip:
            continue
        if set(lever.CONFLICTS) & {m.lever for m in moves}:
            continue
        finding = lever.evidence(findings)
        settings = lever.settings(finding, findings, session.machine) if finding is not None else Refusal("")
        if finding is None or isinstance(settings, Refusal) or not settings:
            continue
        if lever.gain(finding, findings, settings[0]).startup_s > SLOW_START_S:
            continue
        assert lever.PRESERVES in PRESERVES
        moves.append(Move(lever.ID, settings[0], lever.PRESERVES))  # type: ignore[arg-type]
    return moves


def _ratio(trial: Trial) -> float:
    return trial.interval.ratio if trial.interval is not None else 0.0


def _too_low(trial: Trial) -> bool:
    """Less than the script's own speed, or hardly more: a numeric lever may have made the step slower."""
    return trial.interval is not None and trial.interval.ratio < HARDLY_MORE


def measure_roof(
    session: Session, incumbent: Arm, findings: Findings, kept: Sequence[Move] = ()
) -> tuple[Roof | None, Trial]:
    """Measure the roof beside ``incumbent`` (the unmodified script, or the plan so far).

    None where there is none, and the trial's reason says why: also of a script that waits for loading which cannot be
    taken away.
    """
    session.stage = "roof"
    question = Question("roof", MEASURE_S, precision=0.04, without="everything")
    moves = numeric_moves(session, findings, kept)
    arm = session.arm("roof", moves=moves, ablate=ABLATIONS, validation=validation_place(findings))
    trial = measure(session, incumbent, arm, question)
    resident, _ = took_away(session, arm, "data")
    broken = trial.status == "failed" and not trial.windows
    fits = trial.wall_s <= LONG_SHARE * session.left_s()
    if moves and not kept and fits and (broken or _too_low(trial)):  # by a numeric lever that does not fit this script
        session.discard(arm)
        arm = session.arm("roof-plain", ablate=ABLATIONS, validation=validation_place(findings))
        plain = measure(session, incumbent, arm, question)
        resident = resident or took_away(session, arm, "data")[0]
        if broken or _ratio(plain) > _ratio(trial):
            moves, trial = [], plain
    session.discard(arm)
    if trial.interval is None:
        return None, trial
    if trial.interval.high < 1.0:
        return None, replace(trial, reason=NO_ROOF)
    if trial.interval.high > UNCLEAR * trial.interval.low:
        low, high = units.ratio(trial.interval.low), units.ratio(trial.interval.high)
        return None, replace(
            trial, reason=f"its windows differ too much, and say {low} to {high} of the script's speed"
        )
    if not resident and _waits_for_data(findings):
        return None, replace(trial, reason=STILL_LOADS)
    return _roof(findings, trial.interval.ratio, moves, resident), trial


def _waits_for_data(findings: Findings) -> bool:
    """Whether loading holds the step, so that a roof with the loading in it is none."""
    waits = (findings.phases.get("data_wait") or 0.0) >= DEFAULT.min_data_wait_share
    return waits or any(f.cause == "slow-iterator" for f in findings.findings)


def _roof(findings: Findings, ratio: float, moves: Sequence[Move], resident: bool) -> Roof:
    """``ratio``: throughput at the roof over the script's own, which a roof is never below. ``resident``: its batches
    were one batch again and again."""
    now, ratio = findings.throughput, max(1.0, ratio)
    how = ("resident batch; " if resident else "") + "validation, checkpoints and logging taken away"
    if moves:
        how += "; with " + ", ".join(m.lever for m in moves)
    return Roof(
        samples_per_s=None if now.samples_per_s is None else now.samples_per_s * ratio,
        step_s=now.step_s / ratio,
        share=1.0 / ratio,
        how=how,
        levers=[m.lever for m in moves],
    )
