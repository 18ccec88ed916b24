"""How often a DataLoader is constructed at the same line: once, or anew each epoch.

Those made before a step was done since the last one are several loaders of one helper, for training and validation.
"""

from __future__ import annotations

from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.loader import Loads
from hotlap.records.rows import Setting

__all__ = ["install"]


def _is_told(count: int) -> bool:
    """The second to eighth time, then at each doubling: a run of a million epochs writes a few rows."""
    return count > 1 and (count <= 8 or count & (count - 1) == 0)


def install(ctx: Context, loads: Loads) -> None:
    """``setting`` rows named ``loader_made`` with the count so far, at the line. One that wraps another is not made."""
    rec = ctx.rec
    counts: dict[int, tuple[int, int]] = {}
    """By line: how often, and the steps done by then."""

    def made(loader: Any, frame: int | None, wraps: bool) -> None:
        if frame is None or wraps:
            return
        count, steps = counts.get(frame, (0, -1))
        if rec.step_index > steps:
            counts[frame] = (count := count + 1), rec.step_index
            if _is_told(count):
                rec.emit(Setting("loader_made", {"count": count, "workers": loader.num_workers}, frame))

    loads.on_made.append(made)
