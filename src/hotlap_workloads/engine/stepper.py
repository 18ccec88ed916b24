"""One step: forward and backward of its micro-batches, then the update."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from hotlap_workloads.engine.loader import to_device
from hotlap_workloads.engine.optimise import for_global_batch, lr_factor, make_optimizer
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.task import Task

__all__ = ["Stepper", "autocast"]

T = TypeVar("T")

_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def autocast(settings: EngineSettings, device: torch.device) -> AbstractContextManager[Any]:
    """The arithmetic of forward."""
    if settings.precision == "off":
        return nullcontext()
    return torch.autocast(device.type, _TYPES[settings.precision])


class Stepper:
    """The objective on its device, its optimiser, schedule and scaler.

    The memory order is set before the optimiser exists, so that its moments get the same.
    """

    def __init__(self, task: Task, settings: EngineSettings, device: torch.device, ranks: Ranks, epoch_steps: int):
        self.settings, self.device = settings, device
        self.objective = task.objective.to(device)
        if settings.channels_last:
            self.objective.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if settings.activation_checkpointing:
            for stage in task.stages:
                _recompute(stage, settings.compile)
        scaled = for_global_batch(settings, ranks.world)
        self.optimizer = make_optimizer(self.objective, scaled)
        self._schedule_steps = settings.epochs * epoch_steps
        self.pace: list[float] = [0, 0, 1]
        factor = lr_factor(scaled, epoch_steps)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda n: factor(self._place(n)))
        self.scaler = torch.amp.GradScaler(device.type, enabled=settings.precision == "fp16")
        if settings.compile:
            self.objective.compile(mode=settings.compile_mode, dynamic=settings.compile_dynamic or None)
        self._run: nn.Module = self.objective
        if ranks.world > 1:
            ids = [device.index] if device.type == "cuda" else None
            self._run = DistributedDataParallel(self.objective, device_ids=ids)

    def forward_backward(self, micro_batches: Sequence[Any], rows: Sequence[int] = ()) -> dict[str, torch.Tensor]:
        """Gradients of a step; the mean over its micro-batches of what the objective says, still on the device.

        ``rows`` says how many each has: one of half the rows counts half. Without, all count the same.
        """
        means: dict[str, torch.Tensor] = {}
        parts = [sum(rows) / count for count in rows] or [len(micro_batches)] * len(micro_batches)
        for number, micro_batch in enumerate(micro_batches):
            last = number == len(micro_batches) - 1
            alone = isinstance(self._run, DistributedDataParallel) and not last
            with self._run.no_sync() if alone else nullcontext():  # type: ignore[operator]
                batch = to_device(micro_batch, self.device, self.settings.non_blocking)
                with autocast(self.settings, self.device):
                    said = self._run(batch)
                self.scaler.scale(said["loss"] / parts[number]).backward()
            for name, value in said.items():
                means[name] = means.get(name, 0) + value.detach() / parts[number]
        return means

    def update(self) -> None:
        """Clip, step, next learning rate, zero-grad. The scaler itself leaves out steps whose gradients overflowed."""
        if self.settings.clip_norm:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.objective.parameters(), self.settings.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        self.forget()

    def repace(self, steps_left: int) -> None:
        """The learning rate goes on from where it is, and comes to its end with the last of the steps left."""
        now = self.schedule.last_epoch
        place = self._place(now)
        self.pace = [now, place, (self._schedule_steps - place) / max(1, steps_left)]

    def _place(self, update: int) -> float:
        """Where the learning rate is at an update, in the steps that its schedule was made for.

        ``pace`` holds the update from which on it is valid, the place there, and places per update.
        """
        since, place, rate = self.pace
        return place + (update - since) * rate

    def forget(self) -> None:
        """Zero-grad."""
        self.optimizer.zero_grad(set_to_none=self.settings.zero_grad_to_none)

    def judged(self, use: Callable[[], T]) -> T:
        """What ``use`` makes of the model as it is, in eval and inference mode."""
        self.objective.eval()
        with torch.inference_mode(), autocast(self.settings, self.device):
            said = use()
        self.objective.train()
        return said

    def _moves(self) -> Iterator[torch.Tensor]:
        """What forward changes: statistics of norms are buffers, class centres parameters without gradient."""
        yield from self.objective.buffers()
        yield from (parameter for parameter in self.objective.parameters() if not parameter.requires_grad)

    def moved(self) -> list[torch.Tensor]:
        """Copies of what forward changes, for :meth:`leave_out`."""
        return [tensor.detach().clone() for tensor in self._moves()]

    def leave_out(self, moved: list[torch.Tensor]) -> None:
        """As if the step had not been: no gradients, and what forward changes as it was before."""
        self.forget()
        with torch.no_grad():
            for tensor, before in zip(self._moves(), moved, strict=True):
                tensor.copy_(before)


def _recompute(stage: nn.Module, compiled: bool) -> None:
    """Keep only the stage's input in forward, and compute its inside again in backward. Once, however often asked.

    What is computed again does not move the running statistics a second time; but torch.compile takes no such context.
    """
    if getattr(stage.forward, "recomputes", False):
        return
    inside = stage.forward
    norms = [module for module in stage.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    apart: dict[str, Any] = {} if compiled else {"context_fn": lambda: (nullcontext(), _at_rest(norms))}

    def forward(*inputs: Any) -> Any:
        return checkpoint(inside, *inputs, use_reentrant=False, **apart) if torch.is_grad_enabled() else inside(*inputs)

    forward.recomputes = True  # type: ignore[attr-defined]
    stage.forward = forward


@contextmanager
def _at_rest(norms: list[nn.modules.batchnorm._BatchNorm]) -> Iterator[None]:
    """Their running statistics stay as they are: with a momentum of 0 nothing of the batch goes into them."""
    momenta = [norm.momentum for norm in norms]
    counts = [norm.num_batches_tracked.clone() for norm in norms if norm.num_batches_tracked is not None]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        with torch.no_grad():
            tracked = [norm.num_batches_tracked for norm in norms if norm.num_batches_tracked is not None]
            for count, before in zip(tracked, counts, strict=True):
                count.copy_(before)
