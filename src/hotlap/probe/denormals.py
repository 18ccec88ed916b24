"""Denormal numbers among weights, gradients and optimizer state, by a sample of their bits: a CPU is slow at them.

A few hundred values of each tensor are read from memory as integers, so that no torch operation runs and a process that
flushes denormals is read as it is. Only after the steps at which everything is looked at.
"""

from __future__ import annotations

import array
import ctypes
import weakref
from collections.abc import Iterable
from typing import Any

from hotlap.probe.context import Context
from hotlap.records.rows import Setting

__all__ = ["Denormals", "install", "share_of_denormals"]

TENSORS = 24
"""Tensors sampled of each kind, spread over all of them."""
RUN, RUNS = 64, 4
"""Values read in one go, and how often per tensor."""
_EXPONENT, _MANTISSA = 0x7F800000, 0x007FFFFF


def share_of_denormals(torch: Any, tensors: Iterable[Any], runs: int = RUNS) -> float | None:
    """Share of denormal values in a sample of plain dense fp32 tensors on the CPU; None when there is none of those.

    ``runs``: how many stretches of each tensor are read.
    """
    plain = (torch.Tensor, torch.nn.Parameter)
    usable = [t for t in tensors if type(t) in plain and _readable(torch, t)]
    seen = found = 0
    for tensor in usable[:: max(1, len(usable) // TENSORS)]:
        values = _sample(tensor, runs)
        seen += len(values)
        found += sum(1 for v in values if not v & _EXPONENT and v & _MANTISSA)
    return found / seen if seen else None


def _readable(torch: Any, tensor: Any) -> bool:
    if tensor.dtype is not torch.float32 or tensor.layout is not torch.strided or tensor.device.type != "cpu":
        return False
    dense = tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last)
    return bool(dense and tensor.numel() and tensor.data_ptr())


def _sample(tensor: Any, most_runs: int) -> array.array[int]:
    size, address = tensor.numel(), tensor.data_ptr()
    values = array.array("I")
    runs = most_runs if size > RUN * most_runs else 1
    for number in range(runs):
        first = number * (size - min(size, RUN)) // max(1, runs - 1)
        values.frombytes(ctypes.string_at(address + 4 * first, 4 * min(size, RUN if runs > 1 else RUN * most_runs)))
    return values


class Denormals:
    """The optimizers seen, whose tensors are sampled."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._optimizers: list[Any] = []
        self._last: dict[str, Any] | None = None

    def optimizer(self, optimizer: Any) -> None:
        """The first update of an optimizer."""
        self._optimizers.append(weakref.ref(optimizer))

    def look(self, index: int) -> None:
        """Sample, and say it when it is not what was said last."""
        weights: list[Any] = []
        state: list[Any] = []
        for ref in self._optimizers:
            optimizer = ref()
            if optimizer is not None:
                weights += [p for group in optimizer.param_groups for p in group["params"]]
                state += [v for held in optimizer.state.values() if isinstance(held, dict) for v in held.values()]
        torch = self.ctx.torch
        with torch._C.DisableTorchFunction():
            kinds = {"weights": weights, "gradients": [p.grad for p in weights if p.is_leaf], "state": state}
            value = {name: share_of_denormals(torch, tensors) for name, tensors in kinds.items()}
        if any(value.values()) and value != self._last:
            self._last = value
            self.ctx.rec.emit(Setting("denormals", value))


def install(ctx: Context) -> Denormals:
    """Sample after the steps at which the model is looked at."""
    found = Denormals(ctx)
    ctx.rec.on_look.append(found.look)
    return found
