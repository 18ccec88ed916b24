"""A training whose device is simulated: data, order, loading and evaluation's host work are the real ones."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from simulated import Device, late
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_flatten
from torch.utils.flop_counter import FlopCounterMode

from hotlap_workloads.engine.loader import Feeder
from hotlap_workloads.engine.order import Position
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.task import Task

__all__ = ["Counted", "SimulatedTask", "count"]

COUNTED_SAMPLES = 4
"""At least so many make the batches on which FLOPs are counted; they grow with the batch."""
COUNTED_BATCHES = 2


@dataclass(frozen=True)
class Counted:
    """FLOPs of forward and backward per sample, and what the objective said of the last batch that was counted."""

    flops_per_sample: float
    said: Mapping[str, float]


def count(task: Task, settings: EngineSettings) -> Counted:
    """Count on small real batches. Attention is counted as the two products that it is."""
    size = -(-COUNTED_SAMPLES // task.order.grain) * task.order.grain
    small = replace(settings, batch_size=size, workers=0, persistent_workers=False)
    loader = Feeder(task, small, Ranks(), torch.device("cpu")).open(Position(), size)
    flops, said = 0, {}
    for _, batch in zip(range(COUNTED_BATCHES), loader, strict=False):
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            said = task.objective(batch)
            said["loss"].backward()
        flops += counter.get_total_flops()
    task.objective.zero_grad(set_to_none=True)
    return Counted(flops / COUNTED_BATCHES / size, {name: float(value.detach()) for name, value in said.items()})


class SimulatedObjective(nn.Module):
    """Stands where the objective stood: launches a step, and says a loss that is late.

    The optimiser gets one scalar. The real objective is kept inside, without gradients: checkpoints write its weights.
    """

    def __init__(self, real: nn.Module, counted: Counted, device: Device, settings: EngineSettings) -> None:
        super().__init__()
        self.real = real.requires_grad_(False)
        self.nothing = nn.Parameter(torch.zeros(()))
        self._said, self._device = counted.said, device
        self._flops = counted.flops_per_sample * settings.batch_size
        self._copies_block = not (settings.pin_memory and settings.non_blocking)

    def forward(self, batch: Any) -> dict[str, torch.Tensor]:
        if self._copies_block:  # a copy from pageable memory is in the stream's order, and the host waits for its end
            self._device.wait()
        ready_at = self._device.launch(self._flops)
        return {name: late(value + self.nothing, self._device, ready_at) for name, value in self._said.items()}


class SimulatedTask:
    """The task with its device's work replaced by waiting, in training and in evaluation."""

    collate: Any

    def __init__(self, task: Task, counted: Counted, device: Device, settings: EngineSettings) -> None:
        self._task, self._device = task, device
        self._answers: dict[Any, tuple[float, Any]] = {}
        self.objective = SimulatedObjective(task.objective, counted, device, settings)
        self.train_set, self.order, self.collate, self.stages = task.train_set, task.order, task.collate, ()

    def evaluate(self, heavy: bool) -> dict[str, float]:
        """Metrics of nothing; what is real is the host's part of the time, from the second call on."""
        with answered(self._device, self._answers):
            return self._task.evaluate(heavy)


@contextmanager
def answered(device: Device, answers: dict[Any, tuple[float, Any]]) -> Iterator[None]:
    """Outermost calls of modules are waits. What they answer was computed once for each form of input, and counted."""
    plain = nn.Module.__call__
    inside = False

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside:
            return plain(module, *args, **kwargs)
        leaves = tree_flatten((args, kwargs))[0]
        form = (id(module), *[(leaf.shape, leaf.dtype) for leaf in leaves if isinstance(leaf, torch.Tensor)])
        if form not in answers:
            inside = True
            try:
                with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
                    answer = plain(module, *args, **kwargs)
            finally:
                inside = False
            answers[form] = float(counter.get_total_flops()), answer
        flops, answer = answers[form]
        device.wait(device.launch(flops))
        return copy.deepcopy(answer)

    nn.Module.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__call__ = plain  # type: ignore[method-assign]
