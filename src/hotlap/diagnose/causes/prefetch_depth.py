"""prefetch-depth: batches take unevenly long to load, and too few are loaded ahead."""

from __future__ import annotations

from math import sqrt

from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import handing_over_s, waits
from hotlap.records.findings import Finding
from hotlap.records.rows import Load

CAUSE = "prefetch-depth"

_QUEUES = 8
"""An epoch of fewer queues' batches is mostly its start, when every worker's first batches are slow ones."""


def _unevenness(rows: list[Load]) -> float | None:
    """Standard deviation over mean of the batches' load times; None where their squares were not told."""
    told = [row for row in rows if row.sq is not None and row.training and not row.validation and row.batches]
    batches = sum(row.batches for row in told)
    mean = sum(row.w for row in told) / 1e9 / batches if batches > 1 else 0.0
    if mean <= 0.0:
        return None
    variance = sum(row.sq or 0.0 for row in told) / batches - mean * mean
    return sqrt(max(0.0, variance)) / mean


def find(view: View) -> Finding | None:
    """Workers that are fast enough on the mean, a step that waits all the same, and a short queue."""
    loader, loading = view.loader, view.loading
    if loader is None or loading is None or not loading.in_workers or loading.load_s is None or not waits(view):
        return None
    if handing_over_s(view) > 0.0:
        return None  # slow batches make a step wait for their loading, and no longer than that
    depth, every = loader.prefetch_factor or 2, view.times.epoch_start.every
    if every is not None and every * view.times.micro < _QUEUES * depth * view.workers:
        return None
    uneven = _unevenness([row for worker in view.timeline.workers for row in worker.load if row.t >= view.start_ns])
    if uneven is None or uneven < view.policy.uneven_batches or depth >= view.policy.deep_prefetch:
        return None
    rest = max(0.0, view.times.steady_s - view.times.wait_s)
    steady_wait = max(0.0, loading.load_s / max(1, view.workers) - rest)
    where = view.loader_where()
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    evidence = {
        "std_over_mean": uneven, "prefetch_factor": depth, "workers": view.workers, "data_wait_s": view.times.wait_s,
        "mean_wait_s": steady_wait, "shares_wait_with": ["decode", "augment", "storage-read"],
    }  # fmt: skip
    return view.finding(
        CAUSE, view.times.wait_s - steady_wait,
        f"Set prefetch_factor={min(4 * depth, 16)}{at} (now {depth}): the workers are fast enough on the mean, and a "
        "longer queue rides out the slow batches.",
        where, detail=f"uneven batches, {depth} ahead per worker", phase="data_wait", evidence=evidence,
        ablation="data",
    )  # fmt: skip
