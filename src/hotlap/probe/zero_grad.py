"""Zeroing gradients: ``zero_grad`` of optimizers and of modules."""

from __future__ import annotations

import functools
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.own_frames import strip
from hotlap.probe.recorder import ZERO_GRAD

__all__ = ["install"]


def install(ctx: Context) -> None:
    """Replace both."""
    for owner in (ctx.torch.optim.Optimizer, ctx.torch.nn.Module):
        _watch(ctx, owner)


def _watch(ctx: Context, owner: Any) -> None:
    rec = ctx.rec
    clock = rec.clock
    is_compiling = ctx.torch.compiler.is_dynamo_compiling
    original = owner.zero_grad

    @functools.wraps(original)
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> None:
        if is_compiling():
            return original(self, *args, **kwargs)  # type: ignore[no-any-return]
        try:
            if rec.brief or rec.cur is not None or get_ident() != rec.thread:
                return original(self, *args, **kwargs)  # type: ignore[no-any-return]
            rec.cur = ZERO_GRAD
            rec.gc_ns = 0
            rec.t0 = clock()
            try:
                return original(self, *args, **kwargs)  # type: ignore[no-any-return]
            finally:
                if rec.cur == ZERO_GRAD:
                    rec.acc[ZERO_GRAD] += clock() - rec.t0 - rec.gc_ns
                    rec.cur = None
        except BaseException as err:
            strip(err)
            raise

    rec.hooks.add(zero_grad, ZERO_GRAD)
    ctx.undo.replace(owner, "zero_grad", zero_grad)
