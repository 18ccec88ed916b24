"""Counts, once during warm-up, the calls that each of the user's lines makes in one forward: loops of small work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.forward import Forwards
from hotlap.probe.model_facts import is_compiled
from hotlap.records.rows import Setting

__all__ = ["AT_STEP", "install"]

AT_STEP = 4
"""The step after which one training forward is counted; one of :data:`~hotlap.probe.recorder.LOOKS`."""
LINES = 40
"""Lines told, the busiest first."""


def install(ctx: Context, forwards: Forwards) -> None:
    """Count at the first training forward after step :data:`AT_STEP`, unless the script itself profiles or traces."""
    rec = ctx.rec

    def after_step(index: int) -> None:
        if index == AT_STEP:
            forwards.around_once = around

    def around(call: Callable[[], Any], module: Any) -> Any:
        if sys.getprofile() is not None or sys.gettrace() is not None or is_compiled(ctx.torch, module):
            return call()
        frames = rec.frames
        counts: dict[tuple[int, int], int] = {}
        numbers: dict[tuple[int, int], int] = {}

        def on_call(frame: FrameType, event: str, arg: Any) -> None:
            if event == "call":
                caller = frame.f_back
            elif event == "c_call":
                caller = frame
            else:
                return
            if caller is None or frames.kind(caller.f_code) != 1:
                return
            key = (id(caller.f_code), caller.f_lineno)  # the table of frames keeps the code alive
            counts[key] = counts.get(key, 0) + 1
            if key not in numbers:
                numbers[key] = frames.number(caller)

        sys.setprofile(on_call)
        try:
            return call()
        finally:
            if sys.getprofile() is on_call:
                sys.setprofile(None)
            busiest = sorted(counts, key=lambda key: -counts[key])[:LINES]
            rec.emit(Setting("step_calls", {"lines": [[numbers[key], counts[key]] for key in busiest]}))

    rec.on_look.append(after_step)
