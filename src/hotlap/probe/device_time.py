"""On CUDA only: copies to the device, and how long it took for a step and its phases, by events that are read late.

Without a torch built for CUDA this probe installs nothing; with one, it looks away until the script uses CUDA. Asking
whether there is a device would start the driver in the script's place: then it would no longer heed what the script
says in ``CUDA_VISIBLE_DEVICES``, and forked processes could not use CUDA.

In a watched run nothing here waits for the device. In a trial, a script that never asks the device for a value would be
timed by its launches alone for as long as the device's queue takes to fill, after each thaw anew: there the host waits
at the end of a step for the device to end the step :data:`TRIAL_AHEAD` before.
"""

from __future__ import annotations

import functools
from collections import deque
from threading import get_ident
from typing import Any

from hotlap.probe import graph_replays
from hotlap.probe.context import Context
from hotlap.probe.device_phases import DevicePhases, Span
from hotlap.probe.lazy_parameters import let_through
from hotlap.probe.own_frames import strip
from hotlap.probe.recorder import H2D
from hotlap.records.call import TRIAL_AHEAD
from hotlap.records.rows import Event

__all__ = ["install"]

POOL = 64
"""Steps in flight whose events have not been read yet; older ones are dropped."""


def install(ctx: Context) -> None:
    """Replace ``Tensor.to`` and ``Tensor.cuda``, time each step on the device, where torch was built for CUDA."""
    torch = ctx.torch
    if not torch.backends.cuda.is_built():
        return
    steps = _DeviceSteps(ctx, graph_replays.install(ctx))
    ctx.rec.pending = steps.pending
    for name in ("to", "cuda"):
        original = getattr(torch.Tensor, name)
        ours = _copy(ctx, steps.phases, original)
        let_through(ctx, original, ours)
        ctx.undo.replace(torch.Tensor, name, ours)
    ctx.rec.on_step_end.append(steps.after_step)


def _copy(ctx: Context, phases: DevicePhases, original: Any) -> Any:
    rec = ctx.rec
    is_compiling, in_use = ctx.torch.compiler.is_compiling, ctx.torch.cuda.is_initialized

    @functools.wraps(original)
    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or rec.skips[H2D] or rec.cur is not None or self.is_cuda or get_ident() != rec.thread:
            return original(self, *args, **kwargs)
        if not in_use():
            return original(self, *args, **kwargs)
        rec.enter(H2D)
        bracketed, copied = phases.begin("h2d"), False
        try:
            result = original(self, *args, **kwargs)
            copied = result.is_cuda
            return result
        except BaseException as err:
            strip(err)
            raise
        finally:
            if bracketed and copied:
                phases.end()
            elif bracketed:
                phases.drop()
            if rec.cur == H2D and copied:
                rec.leave()
                if not rec.brief:
                    rec.calls[H2D] += 1
            elif rec.cur == H2D:
                rec.cur = None  # to another type, on the host

    return copy


class _DeviceSteps:
    """One event per step end; the time between two of them is what the device saw of a step."""

    def __init__(self, ctx: Context, capturing: list[Any]) -> None:
        self._capturing = capturing
        self._cuda = ctx.torch.cuda
        self._ctx = ctx
        self._flying: deque[tuple[int, int, Any, list[Span] | None]] = deque()
        self._free: list[Any] = []
        self._lost: int | None = None
        """The first step whose event was dropped, while no later one is known to be over."""
        self._seen = 0
        """Steps whose event, where one could be made, is in flight: of later ones nothing is known."""
        self._waits = ctx.call.mode == "trial"
        self.phases = DevicePhases(ctx, self._record)

    def _record(self) -> Any:
        """An event on the training device's stream; None where the script captures a graph, or the device refuses."""
        try:
            if not self._cuda.is_initialized() or self._cuda.is_current_stream_capturing():
                return None
            event = self._free.pop() if self._free else self._cuda.Event(enable_timing=True, blocking=self._waits)
            event.record(self._cuda.current_stream(self._ctx.rec.device))
        except RuntimeError as err:
            self._ctx.failed("device_time", err)
            return None
        return event

    def after_step(self, index: int) -> None:
        try:
            self._take_in(index)
        except Exception as err:  # as a rule the error of an earlier step, told by what asks the device next
            self._ctx.failed("device_time", err)
        finally:
            self._seen = index + 1

    def _take_in(self, index: int) -> None:
        event = self._record()
        spans = self.phases.after_step(index, event) if event is not None else None
        if event is None:
            return
        self._flying.append((index, self._ctx.rec.clock(), event, spans))
        if self._waits and len(self._flying) > TRIAL_AHEAD:
            self._flying[-1 - TRIAL_AHEAD][2].synchronize()  # sleeps: the loader may need this core
        while len(self._flying) > 1 and self._flying[1][2].query():
            self._read(self._flying.popleft(), self._flying[0])
            self._lost = None
        while len(self._flying) > POOL:
            dropped = self._flying.popleft()
            self._lost = dropped[0] if self._lost is None else self._lost

    def pending(self) -> int | None:
        """The first step that the device is not known to have ended; None: it need not be waited for. From any thread.

        Not known is also of a step that ends while this is asked. After an error the device ends nothing any more.
        """
        if not self._cuda.is_initialized():  # or in a forked child, which must not ask
            return None
        if self._capturing:
            return 0
        first = self._seen  # before the events are looked at: a step that comes now counts as not ended
        try:
            for index, _, event, _ in reversed(list(self._flying)):
                if event.query():  # they end in the order in which they were recorded
                    return first
                first = index
        except RuntimeError as err:
            self._ctx.failed("device_time", err)
            return None
        return first if self._lost is None else self._lost

    def _read(self, before: tuple[int, int, Any, Any], step: tuple[int, int, Any, list[Span] | None]) -> None:
        """What the device took for ``step``, where its phases were bracketed."""
        (_, begun, first, _), (index, _, last, spans) = before, step
        if spans is not None:
            taken: dict[str, float] = {}
            for phase, start, end in spans:
                if not end.query():  # on a stream of its own, where a copy for a later step goes on
                    continue
                taken[phase] = taken.get(phase, 0.0) + start.elapsed_time(end) * 1e6
            self._ctx.rec.emit(Event("device_step", begun, int(first.elapsed_time(last) * 1e6), index, d=taken))
            self._free += [event for _, *ends in spans for event in ends if event is not last and event.query()]
        self._free.append(first)
