"""Find the largest batch by training steps on growing ones, then leave the model as it was."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable

import torch

from hotlap_workloads.engine import random_state
from hotlap_workloads.engine.loader import collated
from hotlap_workloads.engine.memory import forget_peak, largest_batch, used_frac
from hotlap_workloads.engine.order import Draw
from hotlap_workloads.engine.ranks import Ranks, alone
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
    """The batch size that all ranks can train with, which try each size together, whoever runs out of memory.

    ``memory`` reads the share of the device in use.
    """
    weights = copy.deepcopy(task.objective.state_dict())
    random = random_state.snapshot()
    most = settings.search_most or len(task.train_set)
    if limit := getattr(task, "batch_most", 0):
        most = min(most, limit)
    attempt = _agreed(_attempts(task, settings, context, memory), context.ranks)
    found = largest_batch(settings.batch_size, attempt, settings.memory_ceiling_frac, most, task.order.grain)
    del attempt
    gc.collect()  # the schedule and its optimiser hold each other
    forget_peak(context.device)  # of attempts that failed: the guard would lower the batch for it
    task.objective.load_state_dict(weights)
    random_state.restore(random)
    return found


def _attempts(
    task: Task, settings: EngineSettings, context: Context, memory: Callable[[torch.device], float | None]
) -> Callable[[int], float | None]:
    """Trains two steps on a batch of that size: the memory that took, None where it ran out."""
    stepper = Stepper(task, settings, context.device, type(context.ranks)(), 1)
    stepper.objective.train()

    def attempt(batch_size: int) -> float | None:
        try:
            for _ in range(2):  # the optimiser's moments, and cuDNN's trials of a new shape, come with the first step
                forget_peak(context.device)
                stepper.forward_backward([load(task, batch_size)])
                stepper.update()
        except torch.cuda.OutOfMemoryError:
            stepper.forget()
            return None
        return memory(context.device)

    return attempt


def _agreed(attempt: Callable[[int], float | None], ranks: Ranks) -> Callable[[int], float | None]:
    """The same of all ranks: the most memory that any took, None where it ran out on any."""

    def agreed(batch_size: int) -> float | None:
        with alone():  # one that runs out of memory in the midst of a step would leave the others waiting
            mine = attempt(batch_size)
        shares = [share for share in ranks.gather(mine) if share is not None]
        return max(shares) if len(shares) == ranks.world else None

    return agreed


def load(task: Task, batch_size: int) -> object:
    """The batch that takes the most memory, where the task knows it; else the first rows, repeated if need be."""
    heaviest = getattr(task, "heaviest", None)
    first = [Draw(row % len(task.train_set), row) for row in range(batch_size)]
    draws = heaviest(batch_size) if heaviest else first
    return collated(task, draws)
