"""Step time over a run, from the steps at which it was looked at: mean seconds per step between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from hotlap.report import svg, units

__all__ = ["step_times"]

CLIP = 4.0
"""The axis ends at so many times the 90th percentile: one validation must not flatten everything else."""


def step_times(starts: Sequence[tuple[int, int]]) -> Markup | None:
    """A line over (step, nanoseconds at which it began); None with fewer than three points."""
    if len(starts) < 3:
        return None
    means = [(b[0], (b[1] - a[1]) / 1e9 / (b[0] - a[0])) for a, b in pairwise(starts) if b[0] > a[0]]
    values = sorted(value for _, value in means)
    high = min(values[-1], CLIP * values[int(0.9 * (len(values) - 1))] or values[-1])
    x = svg.Scale(float(starts[0][0]), float(starts[-1][0]), 1000)
    y = svg.Scale(0.0, high * 1.05, 1000, invert=True)
    line = svg.tag("polyline", {"points": svg.points((x(step), y(value)) for step, value in means),
                                "class": "curve candidate plain-line"})  # fmt: skip
    percent_x, percent_y = svg.Scale(x.low, x.high), svg.Scale(y.low, y.high, invert=True)
    y_ticks, x_ticks = svg.ticks(0.0, y.high, 4), svg.ticks(x.low, x.high, 3)  # of x no more: millions are wide
    told = f"median {units.seconds(values[len(values) // 2])}, most {units.seconds(values[-1])}"
    title = f"Step time over {units.count(x.high)} steps: {told}"
    return svg.tag(
        "svg",
        {"role": "img", "class": "plot", "aria-label": title},
        svg.tag("title", None, title),
        svg.axis_y(y_ticks, [units.seconds(v) for v in y_ticks], percent_y),
        svg.stretched(line),
        svg.axis_x(x_ticks, [units.count(v) for v in x_ticks], percent_x),
        svg.tag("text", {"x": "100%", "y": "100%", "dy": 36, "class": "tick end"}, "step"),
    )
