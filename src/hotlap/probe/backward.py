"""Backward passes: ``torch.autograd.backward``, and the losses the script gives to it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.loader import Loads
from hotlap.probe.own_frames import strip
from hotlap.probe.recorder import BACKWARD, Recorder
from hotlap.probe.validation import Validations

__all__ = ["install"]


class _Losses:
    """Values given to ``backward``, kept for the step's row: numbers where that is free, tensors to be read late."""

    def __init__(self, ctx: Context) -> None:
        torch = ctx.torch
        self.tensor = torch.Tensor
        self.unscaled: list[Any] = []
        self._item = torch._C.TensorBase.item
        self._modes = torch._C._len_torch_function_stack
        self._dispatch = torch._C._len_torch_dispatch_stack
        self._profiling = torch._C._autograd._profiler_enabled
        self._detecting = torch.is_anomaly_enabled
        self._unseen = torch._C.DisableTorchFunction
        self._capturing = torch.cuda.is_current_stream_capturing
        self._copies = ctx.call.mode == "trial"

    def count(self, rec: Recorder) -> None:
        """One more backward; also by whether torch's profiler records it, or anomaly detection is on."""
        rec.micro += 1
        rec.backwards += 1
        rec.profiled += self._profiling()
        rec.anomalous += self._detecting()

    def value(self, tensor: Any) -> Any:
        """The scalar's value, or the scalar without its graph; nothing that the script could see.

        None while the script captures a CUDA graph: nothing is computed then.
        """
        if type(tensor) is self.tensor and not self._modes():
            if tensor.is_cpu and not self._dispatch() and not self._profiling():
                return self._item(tensor)
            if not tensor.is_cuda:
                return tensor.data
            if self._capturing():
                return None
            # It is read later, when the script may have written another value to its memory.
            copies = self._copies and not self._dispatch() and not self._profiling()
            return tensor.data.clone() if copies else tensor.data
        with self._unseen():
            return tensor.data

    def remember(self, kept: list[Any], args: Any, kwargs: Any) -> None:
        """Keep what this backward begins at."""
        if self.unscaled:
            kept.append(self.unscaled.pop())
            self.unscaled.clear()
            return
        tensors = args[0] if args else kwargs.get("tensors", ())
        graded = args[1] if len(args) > 1 else kwargs.get("grad_tensors")
        if graded is None and isinstance(tensors, self.tensor):
            value = self.value(tensors)
            if value is not None:
                kept.append(value)
            return
        with self._unseen():
            for tensor in (tensors,) if isinstance(tensors, self.tensor) else tuple(tensors):
                if isinstance(tensor, self.tensor) and tensor.numel() == 1:
                    kept.append(tensor.data)


def install(ctx: Context, validations: Validations, loads: Loads) -> None:
    """Replace ``torch.autograd.backward`` (and ``GradScaler.scale``).

    ``loads`` is told at each backward: the batches fetched until now were trained on.
    """
    torch, rec, points = ctx.torch, ctx.rec, ctx.points
    is_compiling, clock = torch.compiler.is_dynamo_compiling, rec.clock
    original, losses, after = torch.autograd.backward, _Losses(ctx), _after(ctx)

    def before(args: Any, kwargs: Any) -> None:
        try:
            if points.validating:
                validations.end_by_backward()
            if rec.step_start is None:
                rec.sign_of_training()
            losses.count(rec)
            if loads.fresh:
                loads.confirm()
            else:
                loads.count.trained()
            if len(rec.losses) < 16:
                losses.remember(rec.losses, args, kwargs)
        except Exception as err:
            ctx.failed("backward", err)

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(*args, **kwargs)
        try:
            if get_ident() != rec.thread:
                return original(*args, **kwargs)
            if rec.brief:
                rec.micro += 1
                loads.count.trained()
                result = original(*args, **kwargs)
                after()
                return result
            before(args, kwargs)
            call = _chain(points.around_backward, original) if points.around_backward else original
            if rec.cur is not None:
                return call(*args, **kwargs)
            rec.cur = BACKWARD
            rec.gc_ns = 0
            rec.t0 = clock()
            try:
                result = call(*args, **kwargs)
            finally:
                if rec.cur == BACKWARD:
                    rec.acc[BACKWARD] += clock() - rec.t0 - rec.gc_ns
                    rec.cur = None
            after()
            return result
        except BaseException as err:
            strip(err)
            raise

    rec.hooks.add(backward, BACKWARD)
    ctx.undo.replace(torch.autograd, "backward", backward)
    _watch_scaling(ctx, losses)


def _after(ctx: Context) -> Callable[[], None]:
    callbacks = ctx.points.after_backward

    def after() -> None:
        try:
            for callback in callbacks:
                callback()
        except Exception as err:
            ctx.failed("backward", err)

    return after


def _watch_scaling(ctx: Context, losses: _Losses) -> None:
    """``GradScaler.scale``: what it is given is the loss as the script computed it."""
    torch = ctx.torch
    is_compiling = torch.compiler.is_dynamo_compiling
    scale = torch.amp.GradScaler.scale

    @functools.wraps(scale)
    def scale_loss(self: Any, outputs: Any) -> Any:
        try:
            with torch._C.DisableTorchFunction():
                if isinstance(outputs, torch.Tensor) and outputs.numel() == 1 and not is_compiling():
                    value = losses.value(outputs)
                    if value is not None:
                        losses.unscaled.append(value)
                        del losses.unscaled[:-4]
        except Exception as err:
            ctx.failed("backward", err)
        return scale(self, outputs)

    ctx.undo.replace(torch.amp.GradScaler, "scale", scale_loss)


def _chain(wrappers: list[Any], original: Callable[..., Any]) -> Callable[..., Any]:
    call = original
    for wrapper in wrappers:

        def call(*args: Any, _wrapper: Any = wrapper, _inner: Callable[..., Any] = call, **kwargs: Any) -> Any:
            return _wrapper(_inner, args, kwargs)

    return call
