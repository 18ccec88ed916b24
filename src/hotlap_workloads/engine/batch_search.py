"""Find the largest batch by training steps on growing ones, then leave the model as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch.utils.data import default_collate

from hotlap_workloads.engine import random_state
from hotlap_workloads.engine.memory import largest_batch, used_frac
from hotlap_workloads.engine.order import Draw
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.stepper import Stepper
from hotlap_workloads.engine.task import Context, Task

__all__ = ["find_batch_size"]


def find_batch_size(
    task: Task,
    settings: EngineSettings,
    context: Context,
    memory: Callable[[torch.device], float | None] = used_frac,
) -> int:
    """The batch size that all ranks can train with. ``memory`` reads the share of the device in use."""
    weights = copy.deepcopy(task.objective.state_dict())
    random = random_state.snapshot()
    stepper = Stepper(task, settings, context.device, type(context.ranks)(), 1)
    stepper.objective.train()

    def attempt(batch_size: int) -> float | None:
        if context.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(context.device)
        try:
            for _ in range(2):  # the moments of the optimiser appear with the first step
                stepper.forward_backward([load(task, batch_size)])
                stepper.update()
        except torch.cuda.OutOfMemoryError:
            stepper.forget()
            return None
        return memory(context.device)

    most = settings.search_most or len(task.train_set)
    found = largest_batch(settings.batch_size, attempt, settings.memory_ceiling_frac, most)
    task.objective.load_state_dict(weights)
    random_state.restore(random)
    return min(context.ranks.gather(found))


def load(task: Task, batch_size: int) -> object:
    """The batch that takes the most memory, where the task knows it; else the first rows, repeated if need be."""
    heaviest = getattr(task, "heaviest", None)
    first = [Draw(row % len(task.train_set), row) for row in range(batch_size)]
    draws = heaviest(batch_size) if heaviest else first
    many = getattr(task.train_set, "__getitems__", None)
    samples = many(draws) if many else [task.train_set[draw] for draw in draws]
    return (task.collate or default_collate)(samples)
