"""page-faults: memory goes back to the system and is faulted in again at each step."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "page-faults"


def find(view: View) -> Finding | None:
    """Minor faults per step, at a prior cost each; no more than the kernel's own time allows, where that was measured.

    Without workers' faults: ticks count the training process alone.
    """
    ticks = [t for t in view.timeline.tick if t.minor_faults is not None and t.t >= view.start_ns]
    if len(ticks) < 2 or view.on_device:
        return None
    first, last = ticks[0], ticks[-1]
    steps = sum(row.n for row in view.steady.rows if first.t <= row.t and row.t + row.w <= last.t)
    if not steps:
        return None
    faults = ((last.minor_faults or 0) - (first.minor_faults or 0)) / steps
    seconds = min(faults * view.policy.page_fault_s, view.compute_s)
    system_s = None
    if first.system_cpu is not None and last.system_cpu is not None:
        system_s = (last.system_cpu - first.system_cpu) / steps / 1e9
        seconds = min(seconds, view.policy.page_fault_refill * system_s)
    evidence = {
        "faults_per_step": faults, "system_s": system_s, "basis": "prior", "prior": view.policy.page_fault_s,
    }  # fmt: skip
    return view.finding(
        CAUSE, seconds, "Let the C library keep freed memory: set "
        "MALLOC_MMAP_MAX_=0 and MALLOC_TRIM_THRESHOLD_ high, or preload tcmalloc.", view.forward_where(),
        detail=f"{faults:,.0f} page faults per step", phase="forward", evidence=evidence,
    )  # fmt: skip
