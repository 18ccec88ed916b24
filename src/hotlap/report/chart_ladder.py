"""The ladder: from the unmodified script, lever by lever, towards the roof."""

from __future__ import annotations

from dataclasses import dataclass

from hotlap.report import svg, units, words
from hotlap.report.view import Report

__all__ = ["Rung", "roof_position", "rungs"]


@dataclass(frozen=True)
class Rung:
    """One row of the ladder; positions are percent of the bar's field, None: nothing to draw."""

    name: str
    setting: str
    preserves: str
    state: str
    """``baseline``, ``kept``, ``put back``, ``failed``, ``no effect``, ``not kept``."""
    bar: float | None
    gained_from: float | None
    """Where the bar of the plan before this lever ended."""
    throughput: str
    total: str
    roof_share: str
    predicted: str
    measured: str
    reason: str


def _limit(report: Report) -> float:
    """Ratio over the baseline at the field's right edge: the roof, or the best rung where that is higher or alone."""
    totals = [
        lever.cumulative for lever in report.kept if lever.cumulative is not None and svg.finite(lever.cumulative)
    ]
    roof = report.findings.roof if report.findings is not None else None
    if roof is not None and svg.finite(roof.share) and roof.share > 0:
        totals.append(1.0 / roof.share)
    return max([1.0, *totals]) * 1.04


def roof_position(report: Report) -> float | None:
    """Percent of the field at which the roof stands."""
    roof = report.findings.roof if report.findings is not None else None
    if roof is None or not svg.finite(roof.share) or roof.share <= 0:
        return None
    return round(100 / roof.share / _limit(report), 2)


def rungs(report: Report) -> list[Rung]:
    """Baseline, then every lever in the order tried."""
    limit = _limit(report)

    def position(total: float | None) -> float | None:
        return round(100 * max(0.0, total) / limit, 2) if total is not None and svg.finite(total) else None

    throughput = report.findings.throughput if report.findings is not None else None
    out = [
        Rung(
            "baseline",
            "the script as it is",
            "",
            "baseline",
            position(1.0),
            None,
            units.per_s(throughput.samples_per_s if throughput else None),
            units.ratio(1.0),
            units.share(report.share_of_roof(1.0)),
            "",
            "",
            "",
        )
    ]
    reached = 1.0
    for lever in report.levers:
        measured = lever.measured
        out.append(
            Rung(
                lever.id,
                words.setting_text(lever.setting),
                lever.preserves,
                words.outcome(lever),
                position(lever.cumulative) if lever.kept else None,
                position(reached) if lever.kept else None,
                units.per_s(lever.samples_per_s) if lever.kept else "",
                units.ratio(lever.cumulative) if lever.kept else "",
                units.share(report.share_of_roof(lever.cumulative)) if lever.kept else "",
                units.ratio(lever.predicted),
                units.ratio_interval(measured.ratio, measured.low, measured.high) if measured else units.NONE,
                "" if lever.kept and measured else words.reason(lever),
            )
        )
        if lever.kept and lever.cumulative is not None and svg.finite(lever.cumulative):
            reached = lever.cumulative
    return out
