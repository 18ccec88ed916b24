"""On CUDA: how long the device took for each phase of a step, for one step in a hundred or so.

The host runs ahead of the device: what it sees of a forward is how long the launches took. Events on the script's own
stream, before and after each phase, say when the device was there. They are read once the step has long ended.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context

__all__ = ["DevicePhases", "Span"]

FIRST = 20
EVERY = 100
RARER = 50
"""The first step that is bracketed, and how many go by before the next: later a fiftieth of the steps so far, so that a
week's run tells some hundreds."""

Span = tuple[str, Any, Any]
"""A phase, and the events at its beginning and end."""


class DevicePhases:
    """Brackets the phases of the step that goes on, while it is armed. Nothing here waits for the device."""

    def __init__(self, ctx: Context, record: Callable[[], Any]) -> None:
        self._ctx = ctx
        self._record = record
        """Gives an event recorded now, or None where none can be."""
        self._spans: list[Span] | None = None
        self._open: tuple[str, Any] | None = None
        self._next = FIRST
        hooks = sys.modules["torch.optim.optimizer"]
        ctx.undo.add(hooks.register_optimizer_step_pre_hook(self._before_update).remove)
        ctx.undo.add(hooks.register_optimizer_step_post_hook(self._after_update).remove)
        ctx.undo.add(self._disarm)

    def begin(self, phase: str) -> bool:
        """A phase begins. False (do not end it): this step is not bracketed, or another phase is open."""
        if self._spans is None or self._open is not None or get_ident() != self._ctx.rec.thread:
            return False
        event = self._record()
        if event is None:
            return False
        self._open = phase, event
        return True

    def end(self, event: Any = None) -> None:
        """The open phase ends; at ``event``, where one was recorded just now."""
        if self._open is None:
            return
        (phase, begun), self._open = self._open, None
        ended = event if event is not None else self._record()
        if self._spans is not None and ended is not None:
            self._spans.append((phase, begun, ended))

    def drop(self) -> None:
        """The open phase was none of the device's."""
        self._open = None

    def after_step(self, index: int, event: Any) -> list[Span] | None:
        """A step has ended at ``event``: its spans, None where it was not bracketed. Perhaps the next one will be."""
        spans = self._spans
        if spans is not None:
            self.end(event)
            self._disarm()
        points = self._ctx.points
        if index + 1 >= self._next and not self._ctx.rec.brief and not points.validating:
            self._next = index + 1 + max(EVERY, index // RARER)
            self._spans = []
            points.around_forward.append(self._forward)
            points.around_backward.append(self._backward)
        return spans

    def _disarm(self) -> None:
        self._spans = self._open = None
        points = self._ctx.points
        if self._forward in points.around_forward:
            points.around_forward.remove(self._forward)
        if self._backward in points.around_backward:
            points.around_backward.remove(self._backward)

    def _forward(self, _module: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._bracketed("forward", call, args, kwargs)

    def _backward(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._bracketed("backward", call, args, kwargs)

    def _bracketed(self, phase: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._ctx.points.validating or not self.begin(phase):
            return call(*args, **kwargs)
        try:
            return call(*args, **kwargs)
        finally:
            self.end()

    def _before_update(self, _optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._spans is not None and len(args) < 2 and not kwargs.get("closure"):  # a closure computes, too
            self.begin("optimizer")

    def _after_update(self, _optimizer: Any, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> None:
        if self._open is not None and self._open[0] == "optimizer":
            self.end()
