"""The lines that set the number of threads, detect anomalies or make a profiler: where to change what is left on.

What makes a profiler is noted, not what starts it: a function of ours inside the started one would stand in its report.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.own_frames import strip

__all__ = ["SwitchLines", "install"]


class SwitchLines:
    """Numbers of frames by what was switched there; the last one of each."""

    def __init__(self, ctx: Context) -> None:
        self._frames = ctx.rec.frames
        self._lines: dict[str, int] = {}

    def of(self, what: str) -> int | None:
        """The user's line that switched it, if any: each is named where it is noted (:func:`install`)."""
        return self._lines.get(what)

    def noting(self, original: Any, what: str, not_from: str = "") -> Any:
        """``original``, whose callers' lines are noted; not those in modules whose names start with ``not_from``."""

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                made = original(*args, **kwargs)
            except BaseException as err:
                strip(err)
                raise
            caller = sys._getframe(1)
            inner = bool(not_from) and str(caller.f_globals.get("__name__", "")).startswith(not_from)
            if not inner and self._frames.kind(caller.f_code) != 2:  # a plan's lever is not the script
                self._lines[what] = self._frames.user_number() or self._lines.get(what, 0)
            return made

        return call


def install(ctx: Context) -> SwitchLines:
    """Replace the functions and constructors that switch."""
    lines, torch = SwitchLines(ctx), ctx.torch

    def note(owner: Any, name: str, what: str, not_from: str = "") -> None:
        ctx.undo.replace(owner, name, lines.noting(getattr(owner, name), what, not_from))

    note(torch, "set_num_threads", "threads")
    note(torch.autograd.set_detect_anomaly, "__init__", "anomaly")
    note(torch.autograd.detect_anomaly, "__init__", "anomaly")
    note(torch.profiler.profile, "__init__", "torch profiler")
    note(torch.autograd.profiler.profile, "__init__", "torch profiler", "torch.profiler")
    ctx.on_import("cProfile", lambda module: note(module.Profile, "__init__", "cProfile"))
    ctx.on_import("tracemalloc", lambda module: note(module, "start", "tracemalloc"))
    return lines
