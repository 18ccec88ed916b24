"""The replacements on ``DataLoader`` and its iterators that tell :class:`~hotlap.probe.loader.Loads` what happens."""

from __future__ import annotations

import functools
import sys
from collections import deque
from threading import get_ident
from types import FrameType
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.loader import Loads
from hotlap.probe.own_frames import strip
from hotlap.probe.recorder import DATA_WAIT
from hotlap.probe.validation import Validations

__all__ = ["install"]


WRAPPERS = ("accelerate.data_loader",)
"""Modules that make a loader out of a loader."""


def _by_wrapper(frame: FrameType | None) -> bool:
    """Whether such a module calls, seen from a frame of Hotlap's."""
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("hotlap."):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") in WRAPPERS


def watch_next(loads: Loads, owner: Any) -> None:
    """Replace ``__next__`` of a class of loader iterators."""
    rec, points = loads.rec, loads.ctx.points
    clock, fetched = rec.clock, loads.count.fetched
    original: Any = owner.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        try:
            state = vars(self).get("_hotlap_state")
            if state is None or get_ident() != rec.thread:
                return original(self)
            if rec.cur is not None or points.validating or state.fresh or not state.lens_known:
                return loads.next_batch(state, functools.partial(original, self))
            rec.cur = DATA_WAIT  # from here on as in next_batch, without the calls
            rec.gc_ns = 0
            rec.t0 = clock()
            try:
                batch = original(self)
            finally:
                if rec.cur == DATA_WAIT:
                    rec.acc[DATA_WAIT] += clock() - rec.t0 - rec.gc_ns
                    rec.cur = None
            state.batches += 1
            if state.lens:
                samples = state.lens.popleft()
                fetched(loads.samples_in(state, batch, samples) if state.iterable else samples)
            return batch
        except BaseException as err:
            strip(err)
            raise

    vars(__next__)["_hotlap"] = True
    loads.ctx.undo.replace(owner, "__next__", __next__)


def install(ctx: Context, validations: Validations) -> Loads:
    """Replace ``DataLoader.__init__`` (where it was constructed), ``__iter__``, ``__next__`` and ``_next_index``."""
    loads = Loads(ctx, validations, watch_next)
    rec, changes = ctx.rec, ctx.points.next_index
    clock = rec.clock
    data = ctx.torch.utils.data.dataloader
    init, iterate, next_index = data.DataLoader.__init__, data.DataLoader.__iter__, data._BaseDataLoaderIter._next_index

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except BaseException as err:
            strip(err)
            raise
        try:
            frame, wraps = rec.frames.user_number() or None, _by_wrapper(sys._getframe())
            loads.constructed(self, frame, wraps)
            for callback in loads.on_made:
                callback(self, frame, wraps)
        except Exception as err:
            ctx.failed("loader", err)

    @functools.wraps(iterate)
    def __iter__(self: Any) -> Any:
        try:
            if get_ident() != rec.thread:
                return iterate(self)
            return loads.begin_pass(self, iterate)
        except BaseException as err:
            strip(err)
            raise

    @functools.wraps(next_index)
    def _next_index(self: Any) -> Any:
        try:
            index = next_index(self)
            for change in changes:
                index = change(self, index)
        except BaseException as err:
            strip(err)
            raise
        own = vars(self)
        state = own.get("_hotlap_state")
        if state is not None and not state.batches:
            state.indices_ns = clock()
        if type(index) is list:
            lens = own.get("_hotlap_lens")
            if lens is None:
                lens = own["_hotlap_lens"] = deque()
            lens.append(len(index))
        return index

    ctx.undo.replace(data.DataLoader, "__init__", __init__)
    ctx.undo.replace(data.DataLoader, "__iter__", __iter__)
    ctx.undo.replace(data._BaseDataLoaderIter, "_next_index", _next_index)
    watch_next(loads, data._BaseDataLoaderIter)
    return loads
