"""Which device trains, by the parameters that its first optimizer updates: not by what torch's current device is.

A script that says ``device="cuda:1"`` leaves the first card the current one. And the header of a timeline is written
before the model is on any device, where a script looks at its data first.
"""

from __future__ import annotations

from typing import Any

from hotlap.probe.context import Context
from hotlap.records.rows import Setting

__all__ = ["DeviceUsed", "install"]


class DeviceUsed:
    """Told once; the recorder's ``device`` is its index from then on."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._told = False

    def optimizer(self, optimizer: Any) -> None:
        """An optimizer's first update. On a CPU nothing is told."""
        rec, torch = self._ctx.rec, self._ctx.torch
        if self._told:
            return
        with torch._C.DisableTorchFunction():
            devices = (p.device for group in optimizer.param_groups for p in group["params"])
            used = next((device for device in devices if device.type not in ("cpu", "meta")), None)
        if used is None:
            return
        self._told = True
        index = used.index
        if used.type == "cuda":
            index = torch.cuda.current_device() if index is None else index
            rec.device = index
        name = torch.cuda.get_device_name(index) if used.type == "cuda" else used.type
        rec.emit(Setting("device", {"name": name, "type": used.type, "index": index}))


def install(ctx: Context) -> DeviceUsed:
    """To be told of each optimizer's first update."""
    return DeviceUsed(ctx)
