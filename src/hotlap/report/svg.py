"""Small hand-written SVG: no library, no request, text that keeps its size at every width.

A plot is an ``<svg>`` of full width whose x positions are percentages; curves stand in a nested ``<svg>`` that is
stretched (``preserveAspectRatio="none"``) with strokes that do not scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

__all__ = ["Scale", "axis_x", "axis_y", "finite", "points", "stretched", "tag", "ticks"]


def tag(name: str, attributes: dict[str, object] | None = None, *children: str) -> Markup:
    """One element; attribute values and plain text children are escaped, Markup children are not."""
    parts = "".join(
        f' {escape(key)}="{escape(value)}"' for key, value in (attributes or {}).items() if value is not None
    )
    return Markup(f"<{name}{parts}>{''.join(escape(child) for child in children)}</{name}>")


def finite(value: object) -> bool:
    """Whether this is a number that can be drawn."""
    return isinstance(value, int | float) and math.isfinite(value)


class Scale:
    """A linear scale from values to ``0..size``; an empty or broken domain becomes one that works."""

    def __init__(self, low: float, high: float, size: float = 100.0, invert: bool = False) -> None:
        if not (math.isfinite(low) and math.isfinite(high)):
            low, high = 0.0, 1.0
        if high <= low:
            high = low + (abs(low) * 0.1 or 1.0)
        self.low, self.high, self.size, self.invert = low, high, size, invert

    def __call__(self, value: float) -> float:
        if not math.isfinite(value):
            value = self.low
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return round(self.size * (1 - share if self.invert else share), 3)


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round values within ``low..high``, about so many."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    raw = (high - low) / max(1, about)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999), 10 * power)
    first = math.ceil(low / step - 1e-9)
    count = int((high - first * step) / step + 1e-9)
    return [round((first + n) * step, 12) for n in range(min(count, 20) + 1)]


def points(pairs: Iterable[tuple[float, float]]) -> str:
    """Coordinates of a polyline or polygon."""
    return " ".join(f"{x:g},{y:g}" for x, y in pairs)


def stretched(*children: str) -> Markup:
    """A 1000 x 1000 field stretched over the plot."""
    attributes = {"viewBox": "0 0 1000 1000", "preserveAspectRatio": "none", "width": "100%", "height": "100%"}
    return tag("svg", {**attributes, "class": "field"}, *children)


def axis_y(values: Sequence[float], labels: Sequence[str], scale: Scale) -> Markup:
    """Grid lines with labels left of the plot. ``scale`` gives percent."""
    out = []
    for value, label in zip(values, labels, strict=True):
        y = f"{scale(value)}%"
        out.append(tag("line", {"x1": "0", "x2": "100%", "y1": y, "y2": y, "class": "grid"}))
        out.append(tag("text", {"x": "-8", "y": y, "dy": "0.32em", "class": "tick end"}, label))
    return Markup("").join(out)


def axis_x(values: Sequence[float], labels: Sequence[str], scale: Scale, dy: int = 18) -> Markup:
    """Labels below the plot; the outermost ones stay inside it."""
    out = []
    for value, label in zip(values, labels, strict=True):
        x = scale(value)
        anchor = "start" if x < 4 else "end" if x > 96 else "middle"
        out.append(tag("text", {"x": f"{x}%", "y": "100%", "dy": dy, "class": f"tick {anchor}"}, label))
    return Markup("").join(out)
