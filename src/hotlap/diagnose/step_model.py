"""Fitting the step model: the parameters that levers change to predict."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import StepModel

__all__ = ["fit_step_model"]


def fit_step_model(view: View) -> StepModel:
    """One step's parameters, seconds per step. A phase that was not measured counts as 0.0 in a sum."""
    times, loading = view.times, view.loading
    compute = sum(view.seconds(p) for p in ("forward", "backward", "optimizer", "zero_grad", "h2d", "sync"))
    validation, checkpoint = view.seconds("validation"), view.seconds("checkpoint")
    start = times.epoch_start.per_step_s
    return StepModel(
        step_s=times.step_s,
        data_wait_s=times.wait_s,
        compute_s=compute,
        host_s=sum(view.seconds(p) for p in ("logging", "residual", "gc")),
        periodic_s=validation + checkpoint + start,
        validation_s=validation,
        checkpoint_s=checkpoint,
        epoch_start_s=start,
        load_s=loading.load_s if loading else None,
        load_cpu_s=loading.cpu_s if loading else None,
        decode_s=loading.seconds("decode") if loading else None,
        collate_s=loading.seconds("collate") if loading else None,
        io_wait_s=loading.seconds("storage") if loading else None,
        workers=view.workers,
        cores=max(1, view.machine.cores),
        torch_threads=view.torch_threads,
        steps_per_epoch=view.steps_per_epoch or times.epoch_start.every,
    )
