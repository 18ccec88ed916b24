"""A simulated accelerator: host work is real, the device's step is a wait as long as its counted FLOPs take.

The host goes on while the device works, as with a GPU: what the device computes is *late*, and the host waits when it
reads it (``.item()``, ``bool``, ``.cpu()``), when a copy blocks, or when it is told to. FLOPs are counted by
torch.utils.flop_counter by the shapes of a real batch (matrix products, convolutions, attention), the peak is that of
the GPU's row in machine/peaks.toml for the type that the settings compute in, and MFU, the share of that peak that is
reached, is *said*, not measured. Not in it: launches, copies' own time, memory-bound kernels, FFTs, the device's
memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from hotlap.machine.peaks import gpu_peaks
from hotlap.records.machine import Peak
from hotlap_workloads.engine.machine import Machine
from hotlap_workloads.engine.settings import EngineSettings

__all__ = ["Device", "Gpu", "Late", "late"]

OLD = {"p100": (6, 0), "v100": (7, 0), "t4": (7, 5), "2080": (7, 5)}
"""Compute capabilities before Ampere (CUDA programming guide); all other rows of peaks.toml have TF32: 8.0 or more."""


@dataclass(frozen=True)
class Gpu:
    """A GPU of peaks.toml. Raises ValueError for another."""

    name: str
    mfu: float
    peaks: dict[str, Peak] = field(init=False)

    def __post_init__(self) -> None:
        peaks = {peak.dtype: peak for peak in gpu_peaks(self.name)}
        if not peaks:
            raise ValueError(f"src/hotlap/machine/peaks.toml has no GPU {self.name!r}.")
        if not 0 < self.mfu <= 1:
            raise ValueError(f"An MFU of {self.mfu} is not above 0 and at most 1.")
        object.__setattr__(self, "peaks", peaks)

    def machine(self, cores: int) -> Machine:
        """What presets are made for: this GPU with this host's cores."""
        words = self.name.lower()
        return Machine(cores, next((c for word, c in OLD.items() if word in words), (8, 0)), f"simulated {self.name}")

    def peak(self, settings: EngineSettings) -> Peak:
        """Of the type that matrix products are computed in."""
        if settings.precision != "off":
            return self.peaks[settings.precision]
        return self.peaks["tf32" if settings.tf32 else "fp32"]

    def device(self, settings: EngineSettings) -> Device:
        return Device(self.peak(settings).flops_per_s * self.mfu)


class Device:
    """Does one thing after the other, while the host goes on."""

    def __init__(
        self,
        flops_per_s: float,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.flops_per_s, self._clock, self._sleep = flops_per_s, clock, sleep
        self.free_at = 0.0
        self.busy_s = 0.0

    def launch(self, flops: float) -> float:
        """Begin work as soon as the earlier is done; returns when it will be done."""
        took_s = flops / self.flops_per_s
        self.free_at = max(self.free_at, self._clock()) + took_s
        self.busy_s += took_s
        return self.free_at

    def wait(self, until: float | None = None) -> None:
        """Until all work is done, or that which is done at ``until``."""
        end = self.free_at if until is None else until
        while (left_s := end - self._clock()) > 0:
            self._sleep(left_s)


class Late(torch.Tensor):
    """What the device will have computed at ``ready_at``: whatever is made of it is as late, and reading it waits."""

    device_of: Device
    ready_at: float

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Late)]
        newest = max(found, key=lambda value: value.__dict__["ready_at"]).__dict__
        with torch._C.DisableTorchFunctionSubclass():
            if func in READS:
                newest["device_of"].wait(newest["ready_at"])
            out = func(*args, **(kwargs or {}))
            if func in READS:
                return out.as_subclass(torch.Tensor) if isinstance(out, torch.Tensor) else out
            return tree_map(lambda leaf: _late(leaf, newest["device_of"], newest["ready_at"]), out)


READS = {
    getattr(torch.Tensor, name)
    for name in ("item", "tolist", "numpy", "cpu", "__bool__", "__float__", "__int__", "__index__", "__format__")
}
"""What makes the host wait for a device's tensor."""


def late(value: torch.Tensor, device: Device, ready_at: float) -> Late:
    """The tensor, to be had from ``ready_at`` on. Its graph is kept."""
    made: Late = _late(value, device, ready_at)
    return made


def _late(leaf: Any, device: Device, ready_at: float) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    made = leaf.as_subclass(Late)
    made.__dict__.update(device_of=device, ready_at=ready_at)
    return made
