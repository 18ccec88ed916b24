"""thread-contention: threads and workers fight for the cores."""

from __future__ import annotations

from hotlap.diagnose.loading import Loading
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "thread-contention"


def _by_fewer_threads(compute_s: float, loading: Loading, threads: int, keep: int) -> float:
    """Seconds per step that ``keep`` threads can save: at most all that the workers' CPU time holds up, less what the
    same arithmetic takes longer with fewer threads."""
    held_up = compute_s * loading.busy_workers * max(0.0, 1.0 - loading.wait_frac - loading.sleep_frac)
    return compute_s - max(0.0, compute_s - held_up) * threads / keep


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
    keep = max(1, cores - round(busy)) if busy else cores
    seconds = view.compute_s * (1.0 - cores / demand)
    if loading is not None and not too_many:
        if keep >= threads or view.share(view.times.wait_s) >= view.policy.min_data_wait_share:
            return None  # nothing to set; or loading itself is too slow, and what it does has names of its own
        seconds = min(seconds, _by_fewer_threads(view.compute_s, loading, threads, keep))
    evidence = {
        "torch_threads": threads, "busy_workers": busy, "cores": cores, "workers": view.workers,
        "workers_off_cpu_frac": loading.wait_frac if loading else None, "basis": "prior",
    }  # fmt: skip
    set_at = next((found for row in reversed(view.setting_rows("threads")) if (found := view.setting_where(row))), [])
    set_at = set_at or view.option_where(CAUSE)
    made = view.loader_where() if busy else []
    where = set_at + made if too_many else made + set_at
    return view.finding(
        CAUSE, seconds, f"Call torch.set_num_threads({keep}): {threads} torch threads and {view.workers} workers share "
        f"{cores} cores.", where, detail=f"{demand:.1f} busy threads on {cores} cores", phase="forward",
        evidence=evidence,
    )  # fmt: skip
