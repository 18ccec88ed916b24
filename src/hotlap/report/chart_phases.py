"""Where a step goes: one stacked bar, and the same stacked over the run with the drift marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from hotlap.records.findings import Drift, Findings
from hotlap.report import svg, units
from hotlap.report.words import PHASE_NAMES, phase_name

__all__ = ["Segment", "colour", "over_time", "over_time_rows", "segments", "segments_of"]


@dataclass(frozen=True)
class Segment:
    """One phase of the stacked bar."""

    phase: str
    name: str
    width: float
    """Percent of the bar."""
    share: str
    per_step: str
    css: str


def colour(phase: str) -> str:
    """CSS class of a phase; an unknown phase is drawn as the residual."""
    return f"p-{phase}" if phase in PHASE_NAMES else "p-residual"


def _ordered(phases: set[str]) -> list[str]:
    known = [phase for phase in PHASE_NAMES if phase in phases]
    return known + sorted(phases - set(known))


def segments(findings: Findings) -> list[Segment]:
    """Measured phases of a diagnosis. Shares as recorded."""
    return segments_of(findings.phases, findings.throughput.step_s)


def segments_of(shares: Mapping[str, float | None], step_s: float) -> list[Segment]:
    """Measured phases in the order of a step, each as a share of it; widths scaled so that the bar is full."""
    known = {p: float(v) for p, v in shares.items() if v is not None and svg.finite(v) and v > 0}
    total = sum(known.values())
    return [
        Segment(
            phase,
            phase_name(phase),
            round(100 * known[phase] / total, 3),
            units.share(known[phase]),
            units.seconds(known[phase] * step_s),
            colour(phase),
        )
        for phase in _ordered(set(known))
    ]


def _value(point: dict[str, Any], phase: str) -> float:
    value = point.get("phases", {}).get(phase)
    return max(0.0, float(value)) if svg.finite(value) else 0.0


def _usable(raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted((p for p in raw if svg.finite(p.get("step"))), key=lambda p: float(p["step"]))


def over_time(findings: Findings) -> Markup | None:
    """Stacked areas of seconds per step; None with fewer than two points."""
    data = _usable(findings.over_time)
    phases = _ordered({p for point in data for p in point.get("phases", {}) if _value(point, p) > 0})
    if len(data) < 2 or not phases:
        return None
    tops = [sum(_value(point, phase) for phase in phases) for point in data]
    # one rare spike must not flatten everything else: the axis ends at four times the 90th percentile
    high = min(max(tops), 4.0 * sorted(tops)[int(0.9 * (len(tops) - 1))] or max(tops))
    x = svg.Scale(float(data[0]["step"]), float(data[-1]["step"]), 1000)
    y = svg.Scale(0.0, high * 1.05, 1000, invert=True)
    areas, below = [], [0.0] * len(data)
    for phase in phases:
        above = [b + _value(point, phase) for b, point in zip(below, data, strict=True)]
        upper = [(x(float(p["step"])), y(v)) for p, v in zip(data, above, strict=True)]
        lower = [(x(float(p["step"])), y(v)) for p, v in zip(data, below, strict=True)]
        areas.append(svg.tag("polygon", {"points": svg.points(upper + lower[::-1]), "class": colour(phase)}))
        below = above
    percent_x, percent_y = svg.Scale(x.low, x.high), svg.Scale(y.low, y.high, invert=True)
    y_ticks, x_ticks = svg.ticks(0.0, y.high, 4), svg.ticks(x.low, x.high, 4)
    title = f"Seconds per step by phase over {units.count(x.high)} steps"
    return svg.tag(
        "svg",
        {"role": "img", "class": "plot tall", "aria-label": title},
        svg.tag("title", None, title),
        svg.axis_y(y_ticks, [units.seconds(v) for v in y_ticks], percent_y),
        svg.stretched(*areas),
        _drift(findings.drift, percent_x),
        _columns(data, phases, percent_x),
        svg.axis_x(x_ticks, [units.count(v) for v in x_ticks], percent_x),
        svg.tag("text", {"x": "100%", "y": "100%", "dy": 36, "class": "tick end"}, "step"),
    )


def _drift(drift: Drift | None, scale: svg.Scale) -> Markup:
    if drift is None:
        return Markup("")
    x = scale(drift.at_step)
    end = x > 50
    return svg.tag(
        "g",
        {"class": "drift"},
        svg.tag("line", {"x1": f"{x}%", "x2": f"{x}%", "y1": "-18", "y2": "100%"}),
        svg.tag("text", {"x": f"{x}%", "dx": -6 if end else 6, "y": -8, "class": "end" if end else "start"}, "drift"),
    )


def _columns(data: list[dict[str, Any]], phases: list[str], scale: svg.Scale) -> Markup:
    """Invisible columns that carry the tooltips."""
    out = []
    width = 100.0 / len(data)
    for point in data:
        largest = sorted(((_value(point, p), p) for p in phases), reverse=True)[:4]
        parts = "\n".join(f"{phase_name(p)}  {units.seconds(v)}" for v, p in largest if v > 0)
        text = f"step {units.count(float(point['step']))}: {units.seconds(point.get('step_s'))}\n{parts}"
        left = max(0.0, min(100 - width, scale(float(point["step"])) - width / 2))
        out.append(
            svg.tag(
                "rect",
                {
                    "x": f"{left:.3f}%",
                    "y": "0",
                    "width": f"{width:.3f}%",
                    "height": "100%",
                    "class": "hit",
                    "data-tip": text,
                },
                svg.tag("title", None, text),
            )
        )
    return Markup("").join(out)


def over_time_rows(findings: Findings, most: int = 12) -> tuple[list[str], list[list[str]]]:
    """The chart as a table: at most ``most`` points, phases as columns."""
    data = _usable(findings.over_time)
    phases = _ordered({p for point in data for p in point.get("phases", {}) if _value(point, p) > 0})
    every = max(1, -(-len(data) // most))
    rows = [
        [units.count(float(point["step"])), units.seconds(point.get("step_s"))]
        + [units.seconds(_value(point, phase)) for phase in phases]
        for point in data[::every]
    ]
    return ["step", "step time", *(phase_name(phase) for phase in phases)], rows
