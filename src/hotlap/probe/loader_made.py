"""How often a DataLoader is constructed at the same line: once, or anew each epoch.

Those made before a step was done since the last one are several loaders of one helper, for training and validation.
"""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.own_frames import strip
from hotlap.records.rows import Setting

__all__ = ["by_wrapper", "install"]

_WRAPPERS = ("accelerate.data_loader",)
"""Modules that make a loader out of a loader: it is one, not one made anew."""


def by_wrapper(frame: FrameType | None) -> bool:
    """Whether such a module calls, seen from a frame of Hotlap's."""
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("hotlap."):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") in _WRAPPERS


def _is_told(count: int) -> bool:
    """The second to eighth time, then at each doubling: a run of a million epochs writes a few rows."""
    return count > 1 and (count <= 8 or count & (count - 1) == 0)


def install(ctx: Context) -> None:
    """Replace ``DataLoader.__init__``: ``setting`` rows named ``loader_made`` with the count so far, at the line."""
    rec = ctx.rec
    counts: dict[int, tuple[int, int]] = {}
    """By line: how often, and the steps done by then."""
    loader = ctx.torch.utils.data.DataLoader
    init = loader.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except BaseException as err:
            strip(err)
            raise
        frame = 0 if by_wrapper(sys._getframe()) else rec.frames.user_number()
        count, steps = counts.get(frame, (0, -1))
        if frame and rec.step_index > steps:
            counts[frame] = (count := count + 1), rec.step_index
            if _is_told(count):
                rec.emit(Setting("loader_made", {"count": count, "workers": self.num_workers}, frame))

    ctx.undo.replace(loader, "__init__", __init__)
