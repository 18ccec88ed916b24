"""too-few-workers: loading is slower than the step, and cores are left."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import waits
from hotlap.records.findings import Finding

CAUSE = "too-few-workers"


def _threads_in_use(view: View) -> float:
    """Cores the trainer keeps busy while it computes: by its CPU time where telemetry has it, else torch's threads."""
    ticks = [tick for tick in view.timeline.tick if tick.t >= view.start_ns]
    threads = float(min(view.torch_threads, view.machine.cores))
    if len(ticks) < 2 or ticks[-1].t <= ticks[0].t:
        return threads
    cpu_per_s = (ticks[-1].cpu - ticks[0].cpu) / (ticks[-1].t - ticks[0].t)
    own_load = view.loading.cpu_s if view.loading and view.loading.cpu_s and not view.loading.in_workers else 0.0
    other_s = max(1e-9, view.times.step_s - view.times.wait_s)
    return min(threads, max(1.0, (cpu_per_s * view.times.step_s - own_load) / other_s))


def _hidden_s(view: View) -> float:
    """Seconds of data wait that workers on every core could hide.

    With k workers a step lasts as long as the slowest of: the rest of the step, loading over k, and all CPU work
    over all cores. What a device computes is no work of theirs.
    """
    loading = view.loading
    rest = max(0.0, view.times.steady_s - view.times.wait_s)
    cores = max(1, view.machine.cores)
    if view.workers >= cores and (loading is None or loading.kinds.get("storage", 0.0) < view.policy.io_wait_frac):
        return 0.0
    if loading is None or loading.load_s is None:
        load = view.times.wait_s if view.workers == 0 else view.times.steady_s * view.workers
        cpu = load
    else:
        load, cpu = loading.load_s, loading.cpu_s or 0.0
    most = max(cores, view.workers + 1)
    compute_s = 0.0 if view.on_device else view.compute_s
    alone = max(0.0, rest - compute_s)
    best = max(rest, load / most, (compute_s * _threads_in_use(view) + alone + cpu) / cores)
    return max(0.0, view.times.wait_s - max(0.0, best - rest))


def find(view: View) -> Finding | None:
    """Only with a DataLoader, and while the step waits for it."""
    if view.loader is None or not waits(view):
        return None
    seconds = _hidden_s(view)
    cores = max(1, view.machine.cores)
    loader = view.loader
    where = view.loader_where()
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    if loader.iterable:
        advice = f"Load ahead of the step{at}: workers that each take their part of the IterableDataset, or a thread."
    else:
        advice = f"Set num_workers={cores} and persistent_workers=True{at} (now num_workers={view.workers})."
    evidence = {
        "workers": view.workers, "cores": cores, "data_wait_s": view.times.wait_s,
        "load_s_per_step": view.loading.load_s if view.loading else None,
        "shares_wait_with": ["decode", "augment", "collate", "storage-read"],
    }  # fmt: skip
    detail = (
        "one process"
        if view.workers == 0
        else f"{view.workers} worker{'s' if view.workers > 1 else ''} on {cores} cores"
    )
    return view.finding(
        CAUSE, seconds, advice, where, detail=f"loading in {detail}" if view.workers == 0 else detail,
        phase="data_wait", evidence=evidence, ablation="data",
    )  # fmt: skip
