"""The engine's own trainer with a stopwatch: short epochs, then one evaluation, one checkpoint, and the roof."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from host_memory import peak_bytes, private_bytes

from hotlap_workloads.engine.cadence import Cadences
from hotlap_workloads.engine.journal import Journal
from hotlap_workloads.engine.loader import to_device
from hotlap_workloads.engine.loop import Trainer
from hotlap_workloads.engine.order import Order, Position, RankBatches
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.stepper import autocast
from hotlap_workloads.engine.task import Context, Task

__all__ = ["Repeated", "ShortEpochs", "Watched", "end_of", "steady"]

WARM_STEPS = 3
"""Steps of the first epoch, which is not counted: the optimiser's moments, the allocator, the workers' start."""
RESIDENT = 4
"""Batches that the roof is measured on."""
clock = time.perf_counter


def steady(
    begun: float, over: float, ends: Sequence[float], waits: Sequence[float], inside: Sequence[float], whole: bool
) -> dict[str, float]:
    """Means per step of an epoch, and what the epoch takes beyond its steps at that pace.

    Of a short epoch the second half counts: in the first one the loading processes deliver what they had fetched ahead,
    and that pace does not last. A ``whole`` epoch is what it is: nothing but the first batch's delay is beyond its
    steps, and steps of different sizes are all in it.
    """
    if whole:
        beyond = waits[0] - statistics.fmean(waits[1:] or [0.0]) + over - ends[-1]
        half, step_s = min(1, len(ends) - 1), (over - begun - beyond) / len(ends)
    else:
        half = len(ends) // 2
        step_s = (ends[-1] - (ends[half - 1] if half else begun)) / (len(ends) - half)
    return {
        "step_s": step_s,
        "data_wait_s": statistics.fmean(waits[half:]),
        "in_step_s": statistics.fmean(inside[half:]),
        "epoch_start_s": over - begun - step_s * len(ends),
    }


@dataclass(frozen=True)
class Repeated:
    """An order that goes through its rows ``times`` times per epoch: as a data set so many times as large would.

    After ``epochs`` of the order's own it begins again: some trainings prepare as many as they were told, and no more.
    """

    order: Order
    times: int
    epochs: int

    @property
    def grain(self) -> int:
        return self.order.grain

    def rows(self, epoch: int) -> list[int]:
        return [row for part in range(self.times) for row in self._own(epoch * self.times + part)]

    def _own(self, epoch: int) -> list[int]:
        return self.order.rows(epoch % self.epochs)

    def batches(self, rows: Sequence[int], batch_size: int) -> list[list[int]]:
        return self.order.batches(rows, batch_size)


class ShortEpochs:
    """An order whose first epoch has ``first`` batches, and every other at most ``batches``."""

    def __init__(self, order: Order, first: int, batches: int) -> None:
        self._order, self._first, self._batches = order, first, batches
        self._most = first

    @property
    def grain(self) -> int:
        return self._order.grain

    def rows(self, epoch: int) -> list[int]:
        self._most = self._batches if epoch else self._first
        return self._order.rows(epoch)

    def batches(self, rows: Sequence[int], batch_size: int) -> list[list[int]]:
        return self._order.batches(rows, batch_size)[: self._most]


class ShortTask:
    """A task with another order."""

    def __init__(self, task: Task, order: ShortEpochs) -> None:
        self.objective, self.train_set, self.order, self.stages = task.objective, task.train_set, order, task.stages
        self.collate, self.evaluate = task.collate, task.evaluate


class Watched(Trainer):
    """Times itself. ``wait``: until the device has nothing left to do.

    ``steps``: of a short epoch; more where loading processes fetch far ahead, fewer where the data give fewer.
    ``times``: how often an epoch goes through the data.
    """

    def __init__(
        self, name: str, task: Task, settings: EngineSettings, context: Context, steps: int, wait: Callable[[], None],
        times: int = 1,
    ) -> None:  # fmt: skip
        full = Repeated(task.order, times, settings.epochs)
        whole = RankBatches(full, settings.seed, settings.batch_size, Position(), drop_last=settings.drop_last)
        self.whole_steps = len(whole) // settings.accumulate
        self.every = Cadences.of(settings, self.whole_steps)
        ahead = settings.workers * settings.prefetch_factor // settings.accumulate
        count = min(max(steps, 2 * ahead), self.whole_steps) * settings.accumulate
        order = ShortEpochs(full, min(WARM_STEPS * settings.accumulate, count), count)
        super().__init__(name, ShortTask(task, order), replace(settings, epochs=1_000_000, max_steps=0), context)
        self.wait = wait
        self._due = replace(self._due, evaluate=0, heavy=0, checkpoint=0, show=self.every.show, track=self.every.track)
        self._journal = Journal(context.out, name, self.settings, True, context.say)
        self.host_bytes = 0

    def _begin(self) -> None:
        self._waits: list[float] = []
        self._inside: list[float] = []
        self._ends: list[float] = []
        self._groups: list[list[Any]] = []

    def _steps(self) -> Iterator[tuple[list[Any], list[int]]]:
        begun = clock()
        for group, rows in super()._steps():
            self._waits.append(clock() - begun)
            self._groups = [*self._groups[1 - RESIDENT :], group]
            yield group, rows
            begun = clock()

    def _step(self, micro_batches: list[Any], rows: list[int]) -> None:
        begun = clock()
        super()._step(micro_batches, rows)
        self._ends.append(clock())
        self._inside.append(self._ends[-1] - begun)

    def window(self, seconds: float) -> dict[str, float]:
        """An epoch to warm up, then whole short epochs until ``seconds`` are over."""
        self.stepper.objective.train()
        self._begin()
        self._epoch(None)
        self.wait()
        workers_bytes = private_bytes()
        begun, epochs = clock(), []
        while clock() - begun < seconds or not epochs:
            self._begin()
            epoch_begun = clock()
            self._epoch(None)
            self.wait()
            whole = len(self._ends) == self.whole_steps
            epochs.append(steady(epoch_begun, clock(), self._ends, self._waits, self._inside, whole))
        self.host_bytes = peak_bytes() + workers_bytes
        means = {key: statistics.fmean(epoch[key] for epoch in epochs) for key in epochs[0]}
        return {
            **means,
            "epoch_start_every_steps": self.whole_steps,
            "epochs": len(epochs),
            "samples": self.settings.batch_size * self.settings.accumulate,
        }

    def periodic(self) -> dict[str, float]:
        """Seconds of what the settings ask for now and then; of the second evaluation, as the first one packs."""
        found: dict[str, float] = {}
        for name, every, heavy in (("evaluate", self.every.evaluate, False), ("heavy", self.every.heavy, True)):
            if every:
                self._evaluated(heavy)
                found[f"{name}_s"] = self._timed(lambda heavy=heavy: self._evaluated(heavy))
                found[f"{name}_every_steps"] = every
        if self.every.checkpoint:
            found["checkpoint_s"] = self._timed(self._save)
            found["checkpoint_every_steps"] = self.every.checkpoint
            self._saver.wait()
        return found

    def _evaluated(self, heavy: bool) -> None:
        self.stepper.objective.eval()
        with torch.inference_mode(), autocast(self.settings, self.context.device):
            self.task.evaluate(heavy)
        self.stepper.objective.train()

    def _timed(self, work: Callable[[], Any]) -> float:
        self.wait()
        begun = clock()
        work()
        self.wait()
        return clock() - begun

    def roof_s(self, seconds: float) -> float:
        """The same step on the last batches, which stay on the device. The host is a step ahead at most, as always.

        On several, each as often as the others: batches of images that are padded or drawn at different sizes differ.
        """
        device = self.context.device
        resident = [[to_device(batch, device, False) for batch in group] for group in self._groups]
        turn = itertools.cycle(resident)

        def step() -> Callable[[], Any]:
            said = self.stepper.forward_backward(next(turn))
            self.stepper.update()
            return end_of(said["loss"])

        before = [step() for _ in resident][-1]
        self.wait()
        begun, steps = clock(), 0
        while clock() - begun < seconds or steps < 2 or steps % len(resident):
            this = step()
            before()
            before, steps = this, steps + 1
        self.wait()
        return (clock() - begun) / steps


def end_of(loss: torch.Tensor) -> Callable[[], Any]:
    """Waits until the device has done what it was given so far, and for nothing that it is given later."""
    if not loss.is_cuda:
        return loss.item
    event = torch.cuda.Event()
    event.record()
    return event.synchronize
