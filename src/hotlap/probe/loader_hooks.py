"""The replacements on ``DataLoader`` and its iterators that tell :class:`~hotlap.probe.loader.Loads` what happens."""

from __future__ import annotations

import functools
from collections import deque
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.loader import Loads, watch_next
from hotlap.probe.own_frames import strip
from hotlap.probe.validation import Validations

__all__ = ["install"]


def install(ctx: Context, validations: Validations) -> Loads:
    """Replace ``DataLoader.__init__`` (where it was constructed), ``__iter__``, ``__next__`` and ``_next_index``."""
    loads = Loads(ctx, validations)
    rec, changes = ctx.rec, ctx.points.next_index
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
            loads.constructed(self, rec.frames.user_number() or None)
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
        if type(index) is list:
            own = vars(self)
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
