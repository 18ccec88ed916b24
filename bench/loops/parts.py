"""What the loops of this folder have in common: the task as the engine builds it, its batches, and the stopwatch.

The model, the data, the order of the rows and the update rule are the same objects for all; the loop around them is the
framework's own.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

from hotlap_workloads.catalogue import find_workload
from hotlap_workloads.engine import random_state
from hotlap_workloads.engine.machine import apply_process_wide, pick_device, read_machine
from hotlap_workloads.engine.order import Draw, Position, RankBatches
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.stepper import Stepper
from hotlap_workloads.engine.task import Context, Task
from hotlap_workloads.session import Request, settings_of

__all__ = ["Stopwatch", "Training", "asked_for"]

OFF = {"evaluate_every_epochs": "0", "heavy_every_epochs": "0", "checkpoint_every_epochs": "0"}
"""The loops are compared by their steps: evaluations and checkpoints are the same code for all, and left out."""


class EpochBatches:
    """The batch sampler of a DataLoader: the engine's order, one epoch after the other."""

    def __init__(self, task: Task, settings: EngineSettings) -> None:
        self._task, self._settings, self._epoch = task, settings, 0

    def _batches(self) -> RankBatches:
        s = self._settings
        return RankBatches(self._task.order, s.seed, s.batch_size, Position(self._epoch), drop_last=s.drop_last)

    def __iter__(self) -> Iterator[list[Draw]]:
        batches = self._batches()
        self._epoch += 1
        return iter(batches)

    def __len__(self) -> int:
        return len(self._batches())


class Stopwatch:
    """Told of every step's loss; knows the time from the end of step ``warm`` to that of step ``last``."""

    def __init__(self, warm: int, last: int, device: torch.device) -> None:
        self.last, self._warm, self._device = last, warm, device
        self._losses: list[torch.Tensor] = []
        self._at: list[float] = []

    def step(self, loss: torch.Tensor) -> None:
        """A step has ended."""
        self._losses.append(loss.detach())
        if len(self._losses) in (self._warm, self.last):
            if self._device.type == "cuda":
                torch.cuda.synchronize()
            self._at.append(time.perf_counter())

    @property
    def losses(self) -> list[float]:
        return [float(loss) for loss in self._losses]

    @property
    def step_s(self) -> float:
        begun, ended = self._at
        return (ended - begun) / (self.last - self._warm)


@dataclass
class Training:
    """The task, its settings, where it runs, and the stopwatch."""

    name: str
    task: Task
    settings: EngineSettings
    context: Context
    stopwatch: Stopwatch
    losses_to: Path

    def loader(self) -> DataLoader[Any]:
        """As the documentation of a DataLoader advises: workers that persist, pinned memory, batches prefetched."""
        s = self.settings
        return DataLoader(
            self.task.train_set,  # type: ignore[arg-type]
            batch_sampler=EpochBatches(self.task, s),
            collate_fn=self.task.collate,
            num_workers=s.workers,
            prefetch_factor=s.prefetch_factor if s.workers else None,
            persistent_workers=s.persistent_workers,
            pin_memory=s.pin_memory and self.context.device.type == "cuda",
            generator=torch.Generator(),
        )

    def optimizer(self, epoch_steps: int) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
        """The engine's own update rule and schedule, over the objective in its memory order on its device."""
        made = Stepper(self.task, self.settings, self.context.device, self.context.ranks, epoch_steps)
        return made.optimizer, made.schedule

    def seed(self) -> None:
        """To be called when all is made and the first step has not begun: the augmentation draws from here on."""
        random_state.seed_all(self.settings.seed)

    def done(self) -> None:
        """Print the figures; losses go to a file."""
        self.losses_to.write_text(json.dumps(self.stopwatch.losses))
        samples = self.settings.batch_size * self.settings.accumulate
        step_s = self.stopwatch.step_s
        print("\n" + json.dumps({"step_s": step_s, "samples_per_s": samples / step_s}), flush=True)


def asked_for() -> Training:
    """The training that the JSON in the first argument names."""
    asked = json.loads(sys.argv[1])
    out, data = Path(asked["out"]), Path(asked["data"]) if asked["data"] else None
    out.mkdir(parents=True, exist_ok=True)
    values = {**asked["set"], **OFF, "max_steps": str(asked["steps"]), "epochs": str(asked["steps"])}
    settings = settings_of(Request(asked["workload"], out, "fast", values=values, data=data))
    apply_process_wide(settings)
    context = Context(pick_device(settings, read_machine()), out, data, say=partial(print, file=sys.stderr))
    random_state.seed_all(settings.seed)
    task = find_workload(asked["workload"]).build(settings, context)
    stopwatch = Stopwatch(asked["warm"], asked["steps"], context.device)
    return Training(asked["workload"], task, settings, context, stopwatch, Path(asked["losses"]))
