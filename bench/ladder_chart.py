"""The ladder as an SVG of its own: a bar for each rung, how far it reaches, its spread, and the last rung's roof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from hotlap.report import svg, units

__all__ = ["chart"]

ROW, FIELD, RIGHT, TOP, LETTER = 26, 460, 210, 58, 6.6
STYLE = """text{font:12px system-ui,sans-serif;fill:#1f2933}.title{font-size:15px;font-weight:600}.muted{fill:#616e7c}
.end{text-anchor:end}.middle{text-anchor:middle}.grid{stroke:#e4e7eb}.bar{fill:#4c8bc0}.before{fill:#cbd9e6}
.spread{stroke:#1f2933;stroke-width:1.5}.roof{stroke:#b4481e;stroke-width:1.5;stroke-dasharray:4 3}"""


def chart(title: str, about: str, rows: Sequence[dict[str, Any]]) -> str:
    """``rows`` as ladder_figures.figures gives them; widths are samples per second."""
    roof = rows[-1]["roof_samples_per_s"]
    left = round(30 + LETTER * max(len(row["name"]) + 2 for row in rows))
    scale = svg.Scale(0.0, max([roof, *(row["samples_per_s_range"][1] for row in rows)]) * 1.02, FIELD)
    height, width = TOP + ROW * len(rows) + 40, left + FIELD + RIGHT
    parts = [
        svg.tag("style", None, Markup(STYLE)),
        svg.tag("rect", {"width": width, "height": height, "fill": "#fff"}),
        _text(12, 22, title, "title"),
        _text(12, 41, about, "muted"),
    ]
    bottom = TOP + ROW * len(rows)
    for value in svg.ticks(0.0, scale.high):
        x = left + scale(value)
        parts.append(svg.tag("line", {"x1": x, "x2": x, "y1": TOP, "y2": bottom, "class": "grid"}))
        parts.append(_text(x, bottom + 16, units.tick(value), "muted middle"))
    parts.append(_text(left + FIELD, bottom + 32, "samples/s, evaluations and checkpoints included", "muted end"))
    for number, row in enumerate(rows):
        parts += _row(TOP + ROW * number, row, rows[number - 1] if number else None, scale, left)
    x = left + scale(roof)
    parts.append(svg.tag("line", {"x1": x, "x2": x, "y1": TOP - 4, "y2": bottom, "class": "roof"}))
    parts.append(_text(x, bottom + 32 if x < left + FIELD / 2 else TOP - 8, "roof of the last", "middle"))
    return str(
        svg.tag(
            "svg",
            {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {height}", "width": width},
            svg.tag("title", None, f"{title}. {about}"),
            *parts,
        )
    )


def _row(y: float, row: dict[str, Any], before: dict[str, Any] | None, scale: svg.Scale, left: float) -> list[Markup]:
    bar = {"x": left, "y": y + 5, "height": ROW - 10}
    end, middle = scale(row["samples_per_s"]), y + ROW / 2
    low, high = (left + scale(value) for value in row["samples_per_s_range"])
    reached = min(end, scale(before["samples_per_s"])) if before else 0.0
    factor, total = row["factor"]["median"], row["cumulated"]["median"]
    told = f"{units.per_s(row['samples_per_s'])}   {units.ratio(total)}"
    return [
        _text(left - 10, middle + 4, row["name"] if before is None else f"+ {row['name']}", "end"),
        svg.tag("rect", {**bar, "width": end, "class": "bar"}),
        svg.tag("rect", {**bar, "width": reached, "class": "before"}),
        svg.tag("line", {"x1": low, "x2": high, "y1": middle, "y2": middle, "class": "spread"}),
        _text(left + FIELD + 10, middle + 4, told if before is None else f"{told}   ({units.ratio(factor)})", ""),
    ]


def _text(x: float, y: float, words: str, kind: str) -> Markup:
    return svg.tag("text", {"x": x, "y": y, "class": kind or None}, words)
