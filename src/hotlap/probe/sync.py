"""Where the host asks for a value of the device: ``Tensor.item`` and its kin.

Timed only when no phase is open: inside a forward or a validation the wait belongs to that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.recorder import SYNC
from hotlap.probe.sites import Sites

__all__ = ["METHODS", "install"]

METHODS = ("item", "cpu", "numpy", "tolist", "__bool__", "__float__", "__int__")


def install(ctx: Context, sites: Sites) -> None:
    """Replace the methods on ``torch.Tensor`` (they are C methods of its base) and ``torch.cuda.synchronize``."""
    tensor = ctx.torch.Tensor
    for name in METHODS:
        ctx.undo.replace(tensor, name, _watched(ctx, sites, getattr(tensor, name), name.strip("_")))
    cuda = ctx.torch.cuda
    ctx.undo.replace(cuda, "synchronize", _watched(ctx, sites, cuda.synchronize, "synchronize"))


def _watched(ctx: Context, sites: Sites, original: Callable[..., Any], op: str) -> Callable[..., Any]:
    rec = ctx.rec
    is_compiling = ctx.torch.compiler.is_compiling

    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or rec.cur is not None or rec.step_start is None or get_ident() != rec.thread:
            return original(*args, **kwargs)
        rec.enter(SYNC)
        try:
            return original(*args, **kwargs)
        finally:
            if rec.cur == SYNC:
                sites.count("sync", op, rec.leave())

    return method
