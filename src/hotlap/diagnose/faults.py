"""What page faults cost: memory that goes back to the system and is faulted in again at each step."""

from __future__ import annotations

from dataclasses import dataclass

from hotlap.diagnose.view import View

__all__ = ["Faults", "page_faults"]


@dataclass(frozen=True)
class Faults:
    """Minor faults of the training process."""

    per_step: float
    seconds: float
    """Per step, at most."""
    system_s: float | None
    """What the kernel took per step in all; None: not measured."""


def page_faults(view: View) -> Faults | None:
    """Faults per step, at a prior cost each; no more than the kernel's own time allows, where that was measured.

    Without workers' faults: ticks count the training process alone. None on a device, or where no two ticks counted.
    """
    ticks = [t for t in view.timeline.tick if t.minor_faults is not None and t.t >= view.start_ns]
    if len(ticks) < 2 or view.on_device:
        return None
    first, last = ticks[0], ticks[-1]
    steps = sum(row.n for row in view.steady.rows if first.t <= row.t and row.t + row.w <= last.t)
    if not steps:
        return None
    per_step = ((last.minor_faults or 0) - (first.minor_faults or 0)) / steps
    seconds = min(per_step * view.policy.page_fault_s, view.compute_s)
    system_s = None
    if first.system_cpu is not None and last.system_cpu is not None:
        system_s = (last.system_cpu - first.system_cpu) / steps / 1e9
        seconds = min(seconds, view.policy.page_fault_refill * system_s)
    return Faults(per_step, seconds, system_s)
