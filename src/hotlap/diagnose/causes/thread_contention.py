"""thread-contention: threads and workers fight for the cores."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "thread-contention"


def find(view: View) -> Finding | None:
    """More busy threads than cores, and a sign that they wait for each other; CPU trainings only.

    Either torch has more threads than there are cores, or its threads take them all while workers load, and the
    workers are off the CPU without reading. Named are the line that set the threads, if one did (torch's own choice has
    none), and the loader with its workers.
    """
    if view.on_device:
        return None
    cores = max(1, view.machine.cores)
    threads = view.torch_threads
    loading = view.loading
    busy = loading.busy_workers if loading else 0.0
    demand = threads + busy
    starved = loading is not None and loading.in_workers and (
        loading.wait_frac >= view.policy.contention_wait_frac
        and loading.kinds.get("storage", 0.0) < view.policy.io_wait_frac
    )  # fmt: skip
    too_many = threads > cores
    if demand <= view.policy.contention_frac * cores or not (too_many or (starved and threads >= cores)):
        return None
    seconds = view.compute_s * (1.0 - cores / demand)
    keep = max(1, cores - round(busy)) if busy else cores
    evidence = {
        "torch_threads": threads, "busy_workers": busy, "cores": cores, "workers": view.workers,
        "workers_off_cpu_frac": loading.wait_frac if loading else None, "basis": "prior",
    }  # fmt: skip
    set_at = next((found for row in reversed(view.setting_rows("threads")) if (found := view.setting_where(row))), [])
    made = [view.loader.where] if view.loader and view.loader.where and busy else []
    where = set_at + made if too_many else made + set_at
    return view.finding(
        CAUSE, seconds, f"Call torch.set_num_threads({keep}): {threads} torch threads and {view.workers} workers share "
        f"{cores} cores.", where, detail=f"{demand:.1f} busy threads on {cores} cores", phase="forward",
        evidence=evidence,
    )  # fmt: skip
