"""The roof beside the findings, and whether there is anything left to gain."""

from __future__ import annotations

from dataclasses import replace

from hotlap.diagnose.policy import DEFAULT, Policy
from hotlap.records.findings import Finding, Findings, Roof
from hotlap.records.trials import Interval

__all__ = ["with_roof"]

NOTHING = "nothing-to-gain"


def _material(finding: Finding, policy: Policy) -> bool:
    """A large finding that rests on more than a prior (the roof has tried the priors) and was not refuted."""
    refuted = "without_interval" in finding.evidence and not finding.confirmed
    return finding.share >= policy.material_share and finding.evidence.get("basis") != "prior" and not refuted


def with_roof(findings: Findings, roof: Roof, policy: Policy = DEFAULT, measured: Interval | None = None) -> Findings:
    """Add the roof. From ``policy.roof_share`` on, with nothing material found, say that nothing is to be gained.

    That is confirmed where all of ``measured``, throughput at the roof over the script's own, says so; without it, or
    where the trial was too noisy for it, observed.
    """
    others = [f for f in findings.findings if f.cause != NOTHING]
    if roof.share < policy.roof_share or any(_material(f, policy) for f in others):
        return replace(findings, roof=roof, findings=others)
    left = max(0.0, 1.0 - roof.share)
    sure = measured is not None and measured.high * policy.roof_share <= 1.0
    verdict = Finding(
        cause=NOTHING,
        share=left,
        seconds_per_step=left * findings.throughput.step_s,
        confirmed=sure,
        where=[],
        advice="Leave the script as it is: it trains at its roof on this machine.",
        detail="at its roof",
        evidence={"roof_share": roof.share, "how": roof.how},
    )
    return replace(findings, roof=roof, findings=[verdict, *others])
