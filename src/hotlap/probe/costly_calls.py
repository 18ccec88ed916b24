"""Calls that cost a step dearly wherever they stand, with the line that makes them.

``gc.collect`` and ``torch.cuda.empty_cache`` are timed whole, in whatever phase they fall: the phases keep their own
books (a collection is the collector's time already). Full collections that come by themselves are told by the line they
interrupt.
"""

from __future__ import annotations

import gc
import sys
from threading import get_ident
from typing import Any

from hotlap.probe.c_functions import as_unbound
from hotlap.probe.context import Context
from hotlap.probe.recorder import Recorder
from hotlap.probe.sites import Place, Sites, counted_whole
from hotlap.records.rows import Setting

__all__ = ["install"]

FULL = 2
"""The generation whose collection looks at every object."""


class _Collector:
    """What the garbage collector is set to, told when it changes."""

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        self._last: dict[str, Any] = {}

    def look(self, index: int) -> None:
        """After some of the steps."""
        value = {"enabled": gc.isenabled(), "thresholds": list(gc.get_threshold()), "frozen": gc.get_freeze_count()}
        if value != self._last:
            self._last = value
            self.rec.emit(Setting("collector", value))


def install(ctx: Context, sites: Sites) -> None:
    """Replace ``gc.collect`` and ``torch.cuda.empty_cache``; hear of full collections."""
    collector = _Collector(ctx.rec)
    _hear_of_full_collections(ctx, sites)
    compiling = ctx.torch.compiler.is_dynamo_compiling
    collect = counted_whole(ctx.rec, sites, gc.collect, "gc", "collect", compiling)
    ctx.undo.replace(gc, "collect", as_unbound(gc.collect, collect))
    cuda = ctx.torch.cuda
    timed = counted_whole(ctx.rec, sites, cuda.empty_cache, "memory", "empty_cache", compiling)
    if vars(cuda.memory).get("empty_cache") is cuda.empty_cache:  # the same function under two names
        ctx.undo.replace(cuda.memory, "empty_cache", timed)
    ctx.undo.replace(cuda, "empty_cache", timed)
    ctx.rec.on_look.append(collector.look)


def _hear_of_full_collections(ctx: Context, sites: Sites) -> None:
    rec, clock = ctx.rec, ctx.rec.clock
    known: dict[tuple[int, int], Place] = {}
    begun = 0

    def on_gc(phase: str, info: dict[str, Any]) -> None:
        nonlocal begun
        if info.get("generation") != FULL or rec.step_start is None or get_ident() != rec.thread:
            return
        if sites.inside_whole:  # told already, of the call it came in
            return
        if phase == "start":
            begun = clock()
        elif begun:
            spent, begun = clock() - begun, 0
            caller = sys._getframe().f_back  # none while the interpreter goes
            if caller is not None:
                place = sites.find("gc", "full", caller, known)
                place.n += 1
                place.ns += spent

    gc.callbacks.append(on_gc)
    ctx.undo.add(lambda: gc.callbacks.remove(on_gc) if on_gc in gc.callbacks else None)
