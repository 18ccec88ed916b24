"""A window of torch.profiler, written for TensorBoard."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.task import Context

__all__ = ["profiler_window"]


def profiler_window(settings: EngineSettings, context: Context) -> AbstractContextManager[Any]:
    """Yields the profiler, to be told of each step, or None without a window. Traces are in ``out/profile``."""
    if not settings.profile_steps or not context.ranks.first:
        return nullcontext()
    return torch.profiler.profile(
        schedule=torch.profiler.schedule(
            wait=settings.profile_after_steps, warmup=1, active=settings.profile_steps, repeat=1
        ),
        on_trace_ready=torch.profiler.tensorboard_trace_handler(str(context.out / "profile")),
    )
