"""One comparison of two arms, with its document written to the run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hotlap.lap.session import Session
from hotlap.proof.speedup import ratio_interval
from hotlap.records.trials import Interval, Trial, Window
from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget
from hotlap.trial.compare import compare
from hotlap.trial.periodic import PeriodicStats

__all__ = ["measure"]

TAKEN_AWAY = {
    "data": ("epoch_start",),
    "validation": ("validation",),
    "checkpoint": ("checkpoint",),
    "everything": ("epoch_start", "validation", "checkpoint"),
}
"""Kinds of periodic work that an ablation takes away."""
WINDOWS = Budget(window_s=0.8, window_steps=4, drop_steps=1, min_pairs=4, warmup_least_s=1.0)
"""Many short windows rather than a few long ones: pairs that lie close in time share their noise."""
FIRST_STEP_S = 90.0
"""An arm that has made no step after this long hangs (compiling is given more by its own budget)."""


def measure(
    session: Session,
    incumbent: Arm,
    candidate: Arm,
    name: str,
    seconds: float,
    *,
    setting: Mapping[str, Any] | None = None,
    precision: float = 0.03,
    without: str | None = None,
    startup_s: float = 0.0,
) -> Trial:
    """Alternate the two arms until the interval is narrow or ``seconds`` of measuring are spent.

    ``without`` names the ablation of the candidate: periodic work of that kind no longer happens there (which is
    checked), so it adds nothing to its steps.
    """

    def interval(windows: list[Window], periodic: PeriodicStats) -> Interval | None:
        gone = TAKEN_AWAY.get(without or "", ())
        candidate_s = sum(
            rate * periodic.seconds["candidate"].get(kind, 0.0)
            for kind, rate in periodic.per_step.items()
            if kind not in gone
        )
        return ratio_interval(windows, periodic.baseline_s, candidate_s)

    trial = compare(
        incumbent,
        candidate,
        replace(WINDOWS, seconds=seconds, precision=precision, first_step_s=FIRST_STEP_S + startup_s),
        interval,
        session.on_progress,
    )
    if without not in (None, "everything") and trial.status == "measured":
        trial = _check_ablation(session, candidate, trial, without)
    trial = replace(trial, id=name, setting=dict(setting or {}))
    session.folder.write(f"trials/{candidate.spec.name}.json", trial)
    return trial


def _check_ablation(session: Session, candidate: Arm, trial: Trial, without: str | None) -> Trial:
    """An ablation that did not take hold has measured nothing."""
    timeline = session.timeline(candidate)
    marks = [m for m in timeline.mark if m.kind == "ablation" and m.id == without] if timeline else []
    if marks and any(m.state == "applied" for m in marks):
        return trial
    why = marks[-1].why if marks and marks[-1].why else "it did not occur during the trial"
    return replace(trial, status="no-effect", reason=why, interval=None)
