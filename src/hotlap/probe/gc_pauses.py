"""Pauses of the garbage collector, by ``gc.callbacks``."""

from __future__ import annotations

import gc
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context

__all__ = ["install"]


def install(ctx: Context) -> None:
    """Time each collection on the training thread; it is taken out of the phase it interrupts."""
    rec = ctx.rec
    clock = rec.clock
    begun = 0

    def on_gc(phase: str, info: dict[str, Any]) -> None:
        nonlocal begun
        if get_ident() != rec.thread:
            return
        if phase == "start":
            begun = clock()
        elif begun:
            rec.gc_pause(clock() - begun)
            begun = 0

    gc.callbacks.append(on_gc)
    ctx.undo.add(lambda: gc.callbacks.remove(on_gc) if on_gc in gc.callbacks else None)
