"""How often torch's allocator on the device had to ask the driver for memory, and how it is set up."""

from __future__ import annotations

import os
from typing import Any

from hotlap.probe.context import Context
from hotlap.records.rows import Setting

__all__ = ["install"]

_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def install(ctx: Context) -> None:
    """Look when the model is looked at."""

    def look(index: int) -> None:
        cuda = ctx.torch.cuda
        try:
            if cuda.is_initialized():
                ctx.rec.emit(Setting("device_memory", _value(cuda.memory_stats(ctx.rec.device), index)))
        except Exception as err:  # an allocator of the script's own need not count
            ctx.failed("device_memory", err)

    ctx.rec.on_look.append(look)


def _value(stats: dict[str, Any], index: int) -> dict[str, Any]:
    """The allocator's own counters; the device is not waited for."""
    options = ",".join(os.environ.get(name, "") for name in _VARIABLES)
    return {
        "step": index,
        "driver_allocs": stats.get("num_device_alloc"),
        "retries": stats.get("num_alloc_retries"),
        "expandable": "expandable_segments:true" in options.lower().replace(" ", ""),
    }
