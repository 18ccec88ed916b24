"""Causes are confirmed by taking them away: one throw-away arm per ablation, against the unmodified script."""

from __future__ import annotations

from hotlap.diagnose.confirm import with_ablation
from hotlap.lap.baseline import Baseline
from hotlap.lap.measure import Question, measure
from hotlap.lap.session import Session, validation_place
from hotlap.records.findings import Findings
from hotlap.records.trials import Trial
from hotlap.report import units

__all__ = ["confirm"]

CONFIRM_UNTIL = 0.42
"""Share of the budget by which confirming ends; what is left then stays observed."""
MEASURE_S = 10.0
LONGEST_WAIT_S = 4.0
"""Periodic work that comes more seldom is measured where it happens and stays observed."""
MIN_SHARE = 0.03
"""A cause below this share of the step is not worth a trial of its own."""


def confirm(session: Session, baseline: Baseline) -> tuple[Findings, list[Trial]]:
    """Run the ablations that the findings ask for, largest first, while the budget's share lasts."""
    findings = baseline.findings
    trials: list[Trial] = []
    shares: dict[str, float] = {}
    for finding in findings.findings:
        if finding.ablation is not None:
            shares[finding.ablation] = shares.get(finding.ablation, 0.0) + finding.share
    for ablation in sorted(shares, key=lambda a: -shares[a]):
        if shares[ablation] < MIN_SHARE or session.left_s(CONFIRM_UNTIL) < MEASURE_S / 2:
            continue
        seldom = _too_seldom(findings, ablation)
        if seldom is not None:
            findings = with_ablation(findings, ablation, None, seldom)
            continue
        trial = _without(session, baseline, findings, ablation)
        trials.append(trial)
        findings = with_ablation(findings, ablation, trial.interval, trial.reason)
        if trial.interval is not None:
            session.listener.line(f"without {ablation}: {units.ratio(trial.interval.ratio)}")
    return findings, trials


def _too_seldom(findings: Findings, ablation: str) -> str | None:
    """Why periodic work cannot be taken away in a short trial: it would not come round in it."""
    for finding in findings.findings:
        every = finding.evidence.get("every_steps")
        if finding.ablation != ablation or ablation not in ("validation", "checkpoint") or not every:
            continue
        wait_s = float(every) * findings.throughput.step_s
        if wait_s > LONGEST_WAIT_S:
            return f"it comes every {every:.0f} steps, too seldom for a short trial"
    return None


def _without(session: Session, baseline: Baseline, findings: Findings, ablation: str) -> Trial:
    session.stage = f"confirm: without {ablation}"
    arm = session.arm(f"without-{ablation}", ablate=[ablation], validation=validation_place(findings))
    seconds = min(MEASURE_S, session.left_s(CONFIRM_UNTIL))
    trial = measure(session, baseline.arm, arm, Question(f"without {ablation}", seconds, without=ablation))
    session.discard(arm)
    return trial
