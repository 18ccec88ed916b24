"""Switches of torch's backends that decide how fast compute is, and gradients that are zeroed instead of let go."""

from __future__ import annotations

import weakref
from typing import Any

from hotlap.probe import device_allocs
from hotlap.probe.context import Context
from hotlap.records.rows import Setting

__all__ = ["Backends", "install"]


class Backends:
    """Says the switches when they change; compares gradients between looks."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._optimizer: Any = None
        self._version: int | None = None
        self._last: dict[str, Any] | None = None

    def optimizer(self, optimizer: Any) -> None:
        """The first update of an optimizer."""
        self._optimizer = weakref.ref(optimizer)

    def look(self, index: int) -> None:
        """Read the switches; no torch operation runs."""
        torch = self.ctx.torch
        cudnn = torch.backends.cudnn
        value = {
            "cudnn_benchmark": bool(cudnn.benchmark),
            "cudnn_deterministic": bool(cudnn.deterministic),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "gradients_kept": self._gradients_kept(),
        }
        if value != self._last:
            self._last = value
            self.ctx.rec.emit(Setting("backends", value))

    def _gradients_kept(self) -> bool | None:
        """Whether a gradient is the tensor of the last look, written over since: then its version goes on counting."""
        optimizer = self._optimizer() if self._optimizer is not None else None
        if optimizer is None:
            return None
        with self.ctx.torch._C.DisableTorchFunction():  # a mode or subclass of the script's sees none of it
            grads = (p.grad for group in optimizer.param_groups for p in group["params"])
            first = next((g for g in grads if g is not None), None)
            now = None if first is None else int(first._version)
        before, self._version = self._version, now
        return None if now is None or before is None else now > before


def install(ctx: Context) -> Backends:
    """Look when the model is looked at."""
    found = Backends(ctx)
    ctx.rec.on_look.append(found.look)
    device_allocs.install(ctx)
    return found
