"""Predicting by the step model: what stays of a step when one of its parameters changes."""

from __future__ import annotations

import math

from hotlap.lever.contract import Gain
from hotlap.records.findings import Findings, StepModel

__all__ = ["bounded", "load_seconds", "of_compute", "step_with_loader"]

THREAD_SCALING = 0.6
"""compute(t threads) ~ t ** -0.6. Prior: two threads are one and a half times as fast as one."""
SPIN_PENALTY = 2.2
"""A busy worker beside spinning threads on the same cores adds this many times their compute. Prior."""
HAND_OVER_S = 0.5e-3
"""What a batch costs the step at least when it comes from another process: a queue, a thread, shared memory. Prior."""
HAND_OVER_CROWDED_S = 4e-3
"""The same where threads of the step spin on all cores. Prior."""


def bounded(findings: Findings, low_s: float, high_s: float, basis: str, startup_s: float = 0.0) -> Gain:
    """A gain that is finite, ordered and smaller than the step. ``low_s`` below zero (it may lose) becomes zero."""
    top = max(findings.throughput.step_s, 0.0) * 0.98
    low, high = (0.0 if not math.isfinite(v) else min(max(v, 0.0), top) for v in (low_s, high_s))
    return Gain(min(low, high), max(low, high), basis, startup_s)


def of_compute(findings: Findings, low_ratio: float, high_ratio: float, startup_s: float = 0.0) -> Gain:
    """Gain when forward, backward and optimizer become ``low_ratio`` to ``high_ratio`` times faster (a prior)."""
    compute = findings.step_model.compute_s
    return bounded(findings, compute * (1 - 1 / low_ratio), compute * (1 - 1 / high_ratio), "prior", startup_s)


def load_seconds(model: StepModel) -> float:
    """Seconds of one process to load one step's samples: measured, else inferred from the wait."""
    if model.load_s is not None:
        return model.load_s
    if model.workers == 0:
        return model.data_wait_s
    return (model.data_wait_s + model.compute_s) * model.workers


def _alone(model: StepModel, load: float, compute: float, threads: int) -> float:
    """A step whose samples are loaded by the training process, at best: workers that had more threads beside them than
    there are cores waited for a core while they loaded, and slowed the step down by :data:`SPIN_PENALTY`."""
    if model.load_cpu_s is None or model.workers + threads <= model.cores or threads == 1 or compute <= 0:
        return load + compute
    here = min(load, model.load_cpu_s + (model.io_wait_s or 0.0))
    return here + compute / (1 + SPIN_PENALTY * min(1.0, here / compute))


def step_with_loader(
    model: StepModel, workers: int, threads: int | None, load_s: float | None = None
) -> tuple[float, float]:
    """Seconds of data wait + compute per step, (best, worst), with ``workers`` processes and ``threads`` torch threads.

    Best: loading and compute overlap and share the cores without loss: the slower of the two, or all work spread over
    the cores. Worst: threads and workers that together exceed the cores slow compute by :data:`SPIN_PENALTY`, by how
    busy the workers are. Where there were no workers, a batch costs its handing over, too; where there are to be none,
    they no longer stand in the way. ``load_s`` replaces the measured load time.
    """
    load = load_seconds(model) if load_s is None else load_s
    cores = max(model.cores, 1)
    old = max(min(model.torch_threads, cores), 1)
    new = max(min(threads if threads is not None else old, cores), 1)
    compute = model.compute_s * (old / new) ** THREAD_SCALING
    if workers == 0:
        return _alone(model, load, compute, old), load + compute
    per_worker = load / min(workers, cores)
    best = max(per_worker, compute, (load + compute * new**THREAD_SCALING) / cores)
    busy = min(1.0, per_worker / compute) if compute > 0 else 1.0
    crowded = workers + new > cores
    worst = max(per_worker, compute * (1 + (SPIN_PENALTY * busy if crowded and new > 1 else 0.1 * busy)))
    if model.workers == 0:
        best, worst = best + HAND_OVER_S, worst + (HAND_OVER_CROWDED_S if crowded and new > 1 else HAND_OVER_S)
    return best, max(best, worst)
