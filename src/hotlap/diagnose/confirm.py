"""Causes are confirmed by taking them away and measuring."""

from __future__ import annotations

from dataclasses import replace

from hotlap.records.call import ABLATIONS
from hotlap.records.findings import Finding, Findings
from hotlap.records.trials import Interval

__all__ = ["GAINED_NOTHING", "with_ablation"]

GAINED_NOTHING = 1.02
"""A ratio below this, without the cause, says that it was none; above it, the trial was too short to be sure."""


def _judge(finding: Finding, ablation: str, ratio: Interval | None, reason: str) -> Finding:
    evidence = dict(finding.evidence)
    if ratio is None:
        evidence["without"] = f"Taking {ablation} away could not be measured: {reason or 'no reason given'}."
        return replace(finding, evidence=evidence)
    evidence["without_interval"] = [ratio.low, ratio.ratio, ratio.high]
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
    judged = [_judge(f, ablation, ratio, reason) if f.ablation == ablation else f for f in findings.findings]
    return replace(findings, findings=judged)
