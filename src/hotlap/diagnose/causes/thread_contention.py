"""thread-contention: threads, workers and training processes fight for the cores."""

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

    Either torch has more threads than there are cores, in all processes that train together, or its threads take them
    all while workers load, and the workers are off the CPU without reading. Named are the line that set the threads, if
    one did (torch's own choice has none), and the loader with its workers; of several processes else what they compute.
    """
    if view.on_device:
        return None
    processes = 1 + len(view.timeline.ranks) + view.timeline.beside
    cores = max(1.0, view.machine.cores / processes)
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
    keep = max(1, int(cores) - round(busy))
    seconds = view.compute_s * (1.0 - cores / demand)
    if loading is not None and not too_many:
        if keep >= threads or view.share(view.times.wait_s) >= view.policy.min_data_wait_share:
            return None  # nothing to set; or loading itself is too slow, and what it does has names of its own
        seconds = min(seconds, _by_fewer_threads(view.compute_s, loading, threads, keep))
    evidence = {
        "torch_threads": threads, "busy_workers": busy, "cores": view.machine.cores, "workers": view.workers,
        "processes": processes,
        "workers_off_cpu_frac": loading.wait_frac if loading else None, "basis": "prior",
    }  # fmt: skip
    set_at = next((found for row in reversed(view.setting_rows("threads")) if (found := view.setting_where(row))), [])
    set_at = set_at or view.option_where(CAUSE)
    made = view.loader_where() if busy else []
    where = set_at + made if too_many else made + set_at
    where = where or (view.forward_where() if processes > 1 else [])
    each = f"{processes} processes that train, each of " if processes > 1 else ""
    all_cores = f"{view.machine.cores} cores"
    return view.finding(
        CAUSE, seconds, f"Call torch.set_num_threads({keep}): {each}{threads} torch threads and {view.workers} workers "
        f"share {all_cores}.", where, detail=f"{processes * demand:.1f} busy threads on {all_cores}", phase="forward",
        evidence=evidence,
    )  # fmt: skip
