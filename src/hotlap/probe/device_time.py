"""On CUDA only: copies to the device, and how long the device was busy in each phase, by events that are read late.

Nothing here ever waits for the device. Without CUDA this probe installs nothing, and ``h2d`` is not measured.
"""

from __future__ import annotations

import functools
from collections import deque
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.recorder import H2D
from hotlap.records.rows import Event

__all__ = ["install"]

POOL = 64
"""Steps in flight whose events have not been read yet; older ones are dropped."""


def install(ctx: Context) -> bool:
    """Replace ``Tensor.to`` and ``Tensor.cuda``, time each step on the device. Returns whether there is a device."""
    torch = ctx.torch
    if not torch.cuda.is_available():
        return False
    for name in ("to", "cuda"):
        ctx.undo.replace(torch.Tensor, name, _copy(ctx, getattr(torch.Tensor, name)))
    ctx.rec.on_step_end.append(_DeviceSteps(ctx).after_step)
    return True


def _copy(ctx: Context, original: Any) -> Any:
    rec = ctx.rec
    is_compiling = ctx.torch.compiler.is_compiling

    @functools.wraps(original)
    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or rec.skips[H2D] or rec.cur is not None or self.is_cuda or get_ident() != rec.thread:
            return original(self, *args, **kwargs)
        rec.enter(H2D)
        if not rec.brief:
            rec.calls[H2D] += 1
        try:
            return original(self, *args, **kwargs)
        finally:
            if rec.cur == H2D:
                rec.leave()

    return copy


class _DeviceSteps:
    """One event per step end; the time between two of them is what the device saw of a step."""

    def __init__(self, ctx: Context) -> None:
        self._cuda = ctx.torch.cuda
        self._rec = ctx.rec
        self._flying: deque[tuple[int, int, Any]] = deque()
        self._free: list[Any] = []

    def after_step(self, index: int) -> None:
        if not self._cuda.is_initialized() or self._cuda.is_current_stream_capturing():
            return
        event = self._free.pop() if self._free else self._cuda.Event(enable_timing=True)
        event.record()
        self._flying.append((index, self._rec.clock(), event))
        while len(self._flying) > 1 and self._flying[1][2].query():
            _, begun, first = self._flying.popleft()
            step, _, second = self._flying[0]
            if step % 100 == 0:
                self._rec.emit(Event("device_step", begun, int(first.elapsed_time(second) * 1e6), step))
            self._free.append(first)
        while len(self._flying) > POOL:
            self._flying.popleft()
