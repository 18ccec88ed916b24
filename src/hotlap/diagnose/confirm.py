"""Causes are confirmed by taking them away and measuring."""

from __future__ import annotations

from dataclasses import replace

from hotlap.records.call import ABLATIONS
from hotlap.records.findings import Finding, Findings, StepModel
from hotlap.records.trials import Interval

__all__ = ["GAINED_NOTHING", "with_ablation"]

GAINED_NOTHING = 1.02
"""A ratio below this, without the cause, says that it was none; above it, the trial was too short to be sure."""

MOST_SHARE = 0.99
"""A finding of the whole step would gain without end."""

LEAST_COMPUTE = 0.1
"""Share of the compute seen that is left to compute, whatever a noisy trial says."""


def _judge(finding: Finding, ablation: str, ratio: Interval | None, reason: str, largest: Finding) -> Finding:
    """``largest``: of the findings that the ablation takes away, all at once. One whose own share is too small for the
    gain that was measured is not confirmed by it: the gain may be all the others'."""
    evidence = dict(finding.evidence)
    if ratio is None:
        evidence["without"] = f"Taking {ablation} away could not be measured: {reason or 'no reason given'}."
        return replace(finding, evidence=evidence)
    evidence["without_interval"] = [ratio.low, ratio.ratio, ratio.high]
    explains = finding is largest or 1 / (1 - min(finding.share, MOST_SHARE)) >= ratio.low
    if ratio.low > 1.0 and not explains:
        words = f"taken away together with {largest.cause}: {ratio.ratio:.2f}x"
        evidence["without"] = f"{words[0].upper()}{words[1:]} [{ratio.low:.2f}, {ratio.high:.2f}]."
        detail = f"{finding.detail}; {words}" if finding.detail else words
        return replace(finding, detail=detail, confirmed=False, without=None, evidence=evidence)
    if ratio.low > 1.0:
        return replace(finding, confirmed=True, without=ratio.ratio, evidence=evidence)
    what = "gained nothing" if ratio.ratio < GAINED_NOTHING else "gave no certain gain"
    evidence["without"] = f"Taking {ablation} away {what}: {ratio.ratio:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]."
    words = f"taking it away {what}"
    detail = f"{finding.detail}; {words}" if finding.detail else words
    return replace(finding, detail=detail, confirmed=False, without=None, evidence=evidence)


def with_ablation(findings: Findings, ablation: str, ratio: Interval | None, reason: str) -> Findings:
    """Findings after a trial without ``ablation`` (one of ABLATIONS); ``ratio`` is throughput without it over with it.

    ``ratio`` None: the trial gave no measurement, for ``reason``. Raises ValueError on an unknown ablation.
    """
    if ablation not in ABLATIONS:
        raise ValueError(f"{ablation!r} cannot be taken away; known: {', '.join(ABLATIONS)}.")
    gone = [finding for finding in findings.findings if finding.ablation == ablation]
    largest = max(gone, key=lambda finding: finding.share, default=None)
    judged = [
        _judge(finding, ablation, ratio, reason, largest) if finding.ablation == ablation and largest else finding
        for finding in findings.findings
    ]
    model = findings.step_model
    if ablation == "data" and ratio is not None and ratio.low > 1.0:
        model = _told_by_data(model, findings.throughput.step_s * (1 - 1 / ratio.ratio))
    return replace(findings, findings=judged, step_model=model)


def _told_by_data(model: StepModel, cost_s: float) -> StepModel:
    """The step model after loading was taken away, which saved ``cost_s`` per step.

    More than was waited for: loading in the training's own process also slows what comes after it (numpy's threads spin
    on the cores that torch's then want, its memory pushes the weights out of the caches). That part of compute goes
    with the loading, so it is counted to it. Workers are another matter: they load beside compute.
    """
    more = min(cost_s - model.data_wait_s - model.epoch_start_s, (1 - LEAST_COMPUTE) * model.compute_s)
    if model.workers or more <= 0:
        return model
    load = model.load_s if model.load_s is not None else model.data_wait_s
    grown = (load + more) / load if load > 0 else 1.0
    return replace(
        model,
        data_wait_s=model.data_wait_s + more,
        compute_s=model.compute_s - more,
        load_s=None if model.load_s is None else model.load_s + more,
        decode_s=None if model.decode_s is None else model.decode_s * grown,
    )
