"""The proof's pictures: the interval, the windows of both arms, the loss curves."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from hotlap.records.proof import Quality
from hotlap.records.trials import Interval, Trial, Window
from hotlap.report import svg, units

__all__ = ["ARMS", "interval", "loss_rows", "losses", "windows"]

ARMS = ("baseline", "candidate")
MOST_POINTS = 120


def interval(found: Interval | None, least: float | None = None) -> Markup | None:
    """Dot and whisker on a ratio axis that starts at 1x or below; ``least``: what is still allowed, as a line."""
    if found is None or not all(svg.finite(v) for v in (found.ratio, found.low, found.high)):
        return None
    bounds = [1.0] if least is None else [1.0, least]
    low, high = min(*bounds, found.low), max(1.0, found.high)
    scale = svg.Scale(low - 0.04 * (high - low), high + 0.06 * (high - low))
    values = [v for v in svg.ticks(scale.low, scale.high, 5) if abs(scale(v) - scale(1.0)) > 6] + [1.0]
    x, left, right, one = (f"{scale(v)}%" for v in (found.ratio, found.low, found.high, 1.0))
    text = units.ratio_interval(found.ratio, found.low, found.high)
    what = "Speedup" if least is None else "Throughput ratio"
    title = f"{what} {text}, {units.share(found.level)} interval"
    marks = [svg.tag("line", {"x1": left, "x2": right, "y1": "50%", "y2": "50%", "class": "whisker"})]
    marks += [svg.tag("line", {"x1": v, "x2": v, "y1": "38%", "y2": "62%", "class": "whisker"}) for v in (left, right)]
    grid = [
        svg.tag("line", {"x1": f"{scale(v)}%", "x2": f"{scale(v)}%", "y1": "0", "y2": "100%", "class": "grid"})
        for v in values
    ]
    return svg.tag(
        "svg",
        {"role": "img", "class": "plot short", "aria-label": title},
        svg.tag("title", None, title),
        *grid,
        svg.tag("line", {"x1": one, "x2": one, "y1": "0", "y2": "100%", "class": "one"}),
        *([] if least is None else [_least(f"{scale(least)}%")]),
        *marks,
        svg.tag("circle", {"cx": x, "cy": "50%", "r": 6, "class": "dot"}),
        svg.axis_x(values, [units.tick(v, "x") for v in values], scale),
    )


def _least(x: str) -> Markup:
    return svg.tag("line", {"x1": x, "x2": x, "y1": "0", "y2": "100%", "class": "least"})


def windows(trials: Sequence[Trial]) -> Markup | None:
    """Step time of every window of the proof (else of the last trial that has windows), both arms side by side."""
    having = [t for t in trials if any(svg.finite(w.steady_s) for w in t.windows)]
    chosen = next((t for t in having if t.id == "proof"), having[-1] if having else None)
    if chosen is None:
        return None
    data = [w for w in chosen.windows if svg.finite(w.steady_s)]
    if len(data) < 2:
        return None
    scale = svg.Scale(0.0, 1.1 * max(w.steady_s for w in data), invert=True)
    values = svg.ticks(0.0, scale.high, 3)
    slot = 100 / len(data)
    marks = [_window(window, (n + 0.5) * slot, scale) for n, window in enumerate(data)]
    for arm in ARMS:
        kept = [w.steady_s for w in data if w.arm == arm and not w.dropped]
        if kept:
            y = f"{scale(statistics.median(kept))}%"
            marks.insert(0, svg.tag("line", {"x1": "0", "x2": "100%", "y1": y, "y2": y, "class": f"median {arm}"}))
    title = f"Step time of {len(data)} alternating windows; {sum(bool(w.dropped) for w in data)} dropped"
    return svg.tag(
        "svg",
        {"role": "img", "class": "plot", "aria-label": title},
        svg.tag("title", None, title),
        svg.axis_y(values, [units.seconds(v) for v in values], scale),
        *marks,
        svg.tag("text", {"x": "0", "y": "100%", "dy": 18, "class": "tick start"}, "first window"),
        svg.tag("text", {"x": "100%", "y": "100%", "dy": 18, "class": "tick end"}, "last"),
    )


def _window(window: Window, x: float, scale: svg.Scale) -> Markup:
    text = f"{window.arm}, launch {window.launch + 1}: "
    text += f"{units.seconds(window.steady_s)} per step, {units.count(window.steps)} steps"
    text += f"\ndropped: {window.dropped}" if window.dropped else ""
    arm = window.arm if window.arm in ARMS else ARMS[0]
    attributes = {
        "cx": f"{x:.2f}%",
        "cy": f"{scale(window.steady_s)}%",
        "r": 5,
        "data-tip": text,
        "class": f"window {arm}" + (" dropped" if window.dropped else ""),
    }
    return svg.tag("circle", attributes, svg.tag("title", None, text))


def _curves(quality: Quality) -> list[tuple[str, int, list[tuple[int, float]]]]:
    """(arm, seed, thinned curve): means of equal blocks, so that a long run keeps its shape."""
    out = []
    for arm in ARMS:
        seeds: Any = quality.raw.get(arm, [])
        for seed, raw in enumerate(seeds if isinstance(seeds, list) else []):
            block = max(1, -(-len(raw) // MOST_POINTS)) if isinstance(raw, list) else 1
            curve = []
            for start in range(0, len(raw) if isinstance(raw, list) else 0, block):
                values = [float(v) for v in raw[start : start + block] if svg.finite(v)]
                if values:
                    curve.append((start, statistics.fmean(values)))
            if curve:
                out.append((arm, seed, curve))
    return out


def losses(quality: Quality) -> Markup | None:
    """One line per arm and seed; None without a curve of two points."""
    curves = _curves(quality)
    if not any(len(curve) > 1 for _, _, curve in curves):
        return None
    steps = [step for _, _, curve in curves for step, _ in curve]
    values = sorted(value for _, _, curve in curves for _, value in curve)
    low = min(0.0, values[0])
    high = values[-1] + 0.04 * (values[-1] - low)
    x, y = svg.Scale(0, max(steps), 1000), svg.Scale(low, high, 1000, invert=True)
    lines = [
        svg.tag("polyline", {"points": svg.points((x(s), y(v)) for s, v in curve), "class": f"curve {arm}"})
        for arm, _, curve in curves
    ]
    x_ticks, y_ticks = svg.ticks(x.low, x.high, 4), svg.ticks(y.low, y.high, 4)
    percent_x, percent_y = svg.Scale(x.low, x.high), svg.Scale(y.low, y.high, invert=True)
    title = f"Loss over {units.count(max(steps) + 1)} steps, both arms, {len({s for _, s, _ in curves})} seeds"
    return svg.tag(
        "svg",
        {"role": "img", "class": "plot", "aria-label": title},
        svg.tag("title", None, title),
        svg.axis_y(y_ticks, [units.tick(v) for v in y_ticks], percent_y),
        svg.stretched(*lines),
        svg.axis_x(x_ticks, [units.count(v) for v in x_ticks], percent_x),
        svg.tag("text", {"x": "100%", "y": "100%", "dy": 36, "class": "tick end"}, "step"),
    )


def loss_rows(quality: Quality) -> list[list[str]]:
    """Arm, seed, first and last loss (mean of the drawn blocks)."""
    return [
        [arm, str(seed), units.plain(curve[0][1]), units.plain(curve[-1][1])] for arm, seed, curve in _curves(quality)
    ]
