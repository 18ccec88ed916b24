"""The proof of a lap: the unmodified script against the plan once more, the plan against its roof, and the losses."""

from __future__ import annotations

from dataclasses import replace

from hotlap.diagnose.roofline import with_roof
from hotlap.lap.baseline import Baseline, rediagnose
from hotlap.lap.measure import Question, measure
from hotlap.lap.roof import measure_roof
from hotlap.lap.search import Search
from hotlap.lap.seeds import loss_curves
from hotlap.lap.session import Session
from hotlap.proof.verdict import prove
from hotlap.records.findings import Finding, Findings, Roof
from hotlap.records.proof import Proof, Quality
from hotlap.records.trials import Interval, Trial

__all__ = ["final_proof", "nothing_changed"]

MEASURE_S = 18.0


def final_proof(session: Session, baseline: Baseline, state: Search) -> tuple[Proof, Trial, Findings]:
    """Measure the whole plan against the unmodified script and its roof, and judge quality over paired seeds.

    Also gives the findings of the unmodified script over all that it has run by now, the roof included.
    """
    session.stage = "proof: speed"
    seconds = min(MEASURE_S, max(8.0, session.left_s(0.85)))
    trial = measure(session, baseline.arm, state.incumbent, Question("proof", seconds, precision=0.015))
    ratio = trial.interval.ratio if trial.interval is not None else state.cumulative
    roof, roof_trial = measure_roof(session, state.incumbent, state.findings, state.moves)
    state.trials.append(roof_trial)
    findings = _over_all(session, baseline, roof, ratio)
    session.discard(baseline.arm)
    session.discard(state.incumbent)
    curves = loss_curves(session, state, trial, findings.throughput.step_s, ratio)
    now = findings.throughput.samples_per_s
    proof = prove(
        trial,
        state.moves,
        curves["baseline"],
        curves["candidate"],
        margin_frac=session.options.margin,
        samples_per_s=None if now is None else now * ratio,
        roof_share=None if roof is None else roof.share,
    )
    return proof, trial, findings


def nothing_changed() -> Proof:
    """The proof of an empty plan: the training is what it was."""
    quality = Quality("proved", "bits", "No lever was kept: the training is as it was.")
    return Proof(Interval(1.0, 1.0, 1.0, 1.0), quality, claimed=False)


def _over_all(session: Session, baseline: Baseline, roof: Roof | None, ratio: float) -> Findings:
    """The baseline's findings over its whole run: by now it may have met what its first part had not (validation).

    What was confirmed stays confirmed; the roof becomes the higher of the two that were measured.
    """
    first = baseline.findings
    fresh = rediagnose(session, baseline.arm)
    findings = first
    if fresh is not None:
        known = {f.cause for f in first.findings}
        late = [f for f in fresh.findings if f.cause not in known and f.cause not in ("drift", "nothing-to-gain")]
        findings = _merged(first, late)
    if roof is None:
        return findings
    now = first.throughput
    share = roof.share / ratio
    if first.roof is not None and first.roof.share <= share:
        return findings
    per_s = None if now.samples_per_s is None else now.samples_per_s / share
    return with_roof(findings, Roof(per_s, now.step_s * share, min(1.0, share), roof.how))


def _merged(first: Findings, late: list[Finding]) -> Findings:
    found = sorted([*first.findings, *late], key=lambda f: -f.share)
    return replace(first, findings=found)
