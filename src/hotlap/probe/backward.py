"""Backward passes: ``torch.autograd.backward``, and the losses the script gives to it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.recorder import BACKWARD
from hotlap.probe.validation import Validations

__all__ = ["install"]


def install(ctx: Context, validations: Validations, confirm_loads: Callable[[], None]) -> None:
    """Replace ``torch.autograd.backward`` and ``GradScaler.scale``.

    ``confirm_loads`` is told at each backward: the batches fetched until now were trained on.
    """
    torch, rec, points = ctx.torch, ctx.rec, ctx.points
    is_compiling = torch.compiler.is_compiling
    original = torch.autograd.backward
    unscaled: list[Any] = []

    def remember(tensors: Any) -> None:
        if unscaled:
            rec.losses.append(unscaled.pop())
            unscaled.clear()
            return
        for tensor in (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors):
            if isinstance(tensor, torch.Tensor) and tensor.numel() == 1:
                rec.losses.append(tensor.detach())

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or get_ident() != rec.thread:
            return original(*args, **kwargs)
        if points.validating:
            validations.end_by_backward()
        rec.sign_of_training()
        rec.micro += 1
        confirm_loads()
        if len(rec.losses) < 16:
            remember(args[0] if args else kwargs.get("tensors", ()))
        opened = rec.enter(BACKWARD)
        try:
            if not points.around_backward:
                return original(*args, **kwargs)
            return _chain(points.around_backward, original)(*args, **kwargs)
        finally:
            if opened and rec.cur == BACKWARD:
                rec.leave()

    ctx.undo.replace(torch.autograd, "backward", backward)
    scale = torch.amp.GradScaler.scale

    @functools.wraps(scale)
    def scale_loss(self: Any, outputs: Any) -> Any:
        if isinstance(outputs, torch.Tensor) and outputs.numel() == 1 and not is_compiling():
            unscaled.append(outputs.detach())
            del unscaled[:-4]
        return scale(self, outputs)

    ctx.undo.replace(torch.amp.GradScaler, "scale", scale_loss)


def _chain(wrappers: list[Any], original: Callable[..., Any]) -> Callable[..., Any]:
    call = original
    for wrapper in wrappers:

        def call(*args: Any, _wrapper: Any = wrapper, _inner: Callable[..., Any] = call, **kwargs: Any) -> Any:
            return _wrapper(_inner, args, kwargs)

    return call
