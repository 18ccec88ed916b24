"""The training loop: steps, and what is due between them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from hotlap_workloads.engine import random_state
from hotlap_workloads.engine.cadence import Cadences
from hotlap_workloads.engine.checkpoint import CURRENT, Saver, fits, load
from hotlap_workloads.engine.journal import Journal
from hotlap_workloads.engine.loader import Feeder
from hotlap_workloads.engine.loss_watch import LossWatch
from hotlap_workloads.engine.memory import lowered, used_frac
from hotlap_workloads.engine.order import Position
from hotlap_workloads.engine.profiler import profiler_window
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.state import pack, unpack
from hotlap_workloads.engine.stepper import Stepper, autocast
from hotlap_workloads.engine.stop_signal import StopSignal
from hotlap_workloads.engine.task import Context, Task
from hotlap_workloads.engine.throughput import Throughput, progress_line
from hotlap_workloads.errors import EXIT_TERMINATED, WorkloadError

__all__ = ["Result", "Trainer"]

T = TypeVar("T")

AGREE_EVERY_STEPS = 10
"""Steps between questions whether any rank was asked to stop: asking makes all ranks wait for each other."""


@dataclass
class Result:
    """Where a training ended: the last evaluation's metrics, steps, samples trained on (all ranks), steps skipped."""

    metrics: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    samples: int = 0
    skipped: int = 0


class Trainer:
    """Trains a task as the settings say. ``memory`` reads the share of the device's memory in use."""

    def __init__(self, name: str, task: Task, settings: EngineSettings, context: Context) -> None:
        self.task, self.settings, self.context = task, settings, context
        self.position = Position()
        self.batch_size = settings.batch_size
        self.memory: Callable[[torch.device], float | None] = used_frac
        self._feeder = Feeder(task, settings, context.ranks, context.device)
        self.epoch_steps = len(self._feeder.batches(Position(), settings.batch_size)) // settings.accumulate
        if self.epoch_steps == 0:
            raise WorkloadError(
                f"{len(task.train_set)} samples give not one step of {settings.accumulate} x {settings.batch_size} "
                f"on each of {context.ranks.world} ranks.",
                "Lower batch_size.",
            )
        self.total_steps = settings.epochs * self.epoch_steps
        if settings.max_steps:
            self.total_steps = min(self.total_steps, settings.max_steps)
        self.stepper = Stepper(task, settings, context.device, context.ranks, self.epoch_steps)
        self._due = Cadences.of(settings, self.epoch_steps)
        self._name = name
        self._saver = Saver(context.out, settings.checkpoint_in_background)
        self._watch = LossWatch(settings.on_nan, context.out, context.ranks, context.device)
        self._throughput = Throughput()
        self._sums: dict[str, Any] = {}
        self._summed = 0
        self._result = Result()
        self._stop = StopSignal()

    def run(self) -> Result:
        """Train to the end, from the last checkpoint where there is one."""
        ranks = self.context.ranks
        self._journal = Journal(self.context.out, self._name, self.settings, ranks.first, self.context.say)
        try:
            with self._stop, profiler_window(self.settings, self.context) as profiler:
                self._resume()
                self.stepper.objective.train()
                while self.position.step < self.total_steps:
                    self._epoch(profiler)
                self._watch.settle()
                if not self._result.metrics or not Cadences.due(self._due.evaluate, self.position.step):
                    self._evaluate(heavy=False)
                self._save()
                self._saver.wait()
                if self.settings.track_model:
                    self._journal.artefact(self.context.out / CURRENT)
        finally:
            self._journal.close()
        self._result.steps, self._result.skipped = self.position.step, self._watch.skipped
        return self._result

    def _epoch(self, profiler: Any) -> None:
        """The rest of this epoch."""
        for micro_batches in self._steps():
            self._step(micro_batches)
            if profiler is not None:
                profiler.step()
            if self._between_steps() or self.position.step >= self.total_steps:
                return
        self.position.next_epoch()

    def _steps(self) -> Iterator[list[Any]]:
        group: list[Any] = []
        for micro_batch in self._feeder.open(self.position, self.batch_size):
            group.append(micro_batch)
            if len(group) == self.settings.accumulate:
                yield group
                group = []

    def _step(self, micro_batches: list[Any]) -> None:
        means = self.stepper.forward_backward(micro_batches)
        if self._watch.must_skip(means["loss"]):
            self.stepper.forget()
        else:
            self._watch.look(self.position.step + 1, means["loss"], micro_batches)
            self.stepper.update()
            for name, value in means.items():
                read = value.item() if self.settings.read_loss_every_step else value
                self._sums[name] = self._sums.get(name, 0.0) + read
            self._summed += 1
        self.position.step += 1
        self.position.count(self.batch_size, self.settings.accumulate)
        samples = self.batch_size * self.settings.accumulate * self.context.ranks.world
        self._throughput.add(samples)
        self._result.samples += samples

    def _between_steps(self) -> bool:
        """Whatever is due after this step. True when the epoch's loader must be opened anew."""
        step, due = self.position.step, Cadences.due
        if due(self._due.show, step):
            self._show()
        if due(self._due.evaluate, step):
            self._evaluate(heavy=False)
        if due(self._due.heavy, step):
            self._evaluate(heavy=True)
        if due(self._due.checkpoint, step):
            self._save()
        if due(self._due.cleanup, step):
            gc.collect()
            if self.context.device.type == "cuda":
                torch.cuda.empty_cache()
        self._stop_if_asked()
        return due(self._due.memory, step) and self._lower_batch()

    def _show(self) -> None:
        """The mean of each scalar since the last line, read from the device now."""
        means = {name: float(value) / self._summed for name, value in self._sums.items()}
        self._sums, self._summed = {}, 0
        rate = self._throughput.take()
        step, left = self.position.step, self.total_steps - self.position.step
        per_step = self.batch_size * self.settings.accumulate * self.context.ranks.world
        if means:
            eta_s = left * per_step / rate
            epoch = (step - 1) // self.epoch_steps + 1
            self._journal.say(progress_line(rate, means["loss"], epoch, step, self.total_steps, eta_s))
        values: dict[str, float] = {**means, "samples_per_s": rate, "lr": float(self.stepper.schedule.get_last_lr()[0])}
        self._journal.write(step, values)
        if Cadences.due(self._due.track, step) or self._due.track < self._due.show:
            self._journal.track(step, values)

    def evaluate_checkpoint(self, heavy: bool) -> dict[str, float]:
        """The metrics of the run's last checkpoint; nothing is trained or written."""
        return self.with_checkpoint(lambda: self.task.evaluate(heavy))

    def with_checkpoint(self, use: Callable[[], T]) -> T:
        """What ``use`` makes of the model of the run's last checkpoint, in eval and inference mode."""
        if (state := load(self.context.out, self.context.say)) is None:
            raise WorkloadError(f"{self.context.out} holds no checkpoint.", "Train first.")
        fits(state["objective"], self.stepper.objective.state_dict(), self.context.out)
        self.stepper.objective.load_state_dict(state["objective"])
        return self._judged(use)

    def _judged(self, use: Callable[[], T]) -> T:
        self.stepper.objective.eval()
        with torch.inference_mode(), autocast(self.settings, self.context.device):
            said = use()
        self.stepper.objective.train()
        return said

    def _evaluate(self, heavy: bool) -> None:
        self._watch.settle()
        metrics = self._judged(lambda: self.task.evaluate(heavy))
        self._result.metrics.update(metrics)
        self._journal.say(f"Step {self.position.step}  " + "  ".join(f"{k} {v:.4f}" for k, v in metrics.items()))
        self._journal.write(self.position.step, metrics)
        self._journal.track(self.position.step, metrics)

    def _stop_if_asked(self) -> None:
        ranks = self.context.ranks
        if ranks.world > 1 and self.position.step % AGREE_EVERY_STEPS:
            return
        if ranks.any(self._stop.asked, self.context.device):
            self._save()
            self._saver.wait()
            raise WorkloadError(
                f"Stopped by SIGTERM after step {self.position.step}, and saved.",
                "The same command goes on from there.",
                EXIT_TERMINATED,
            )

    def _lower_batch(self) -> bool:
        """The guard: a smaller batch once the memory is nearly full. All ranks take the smallest."""
        used, ceiling = self.memory(self.context.device), self.settings.memory_ceiling_frac
        mine = self.batch_size if used is None else lowered(self.batch_size, used, ceiling)
        agreed = min(self.context.ranks.gather(mine))
        if agreed == self.batch_size:
            return False
        self._journal.say(f"Memory above {ceiling} of the device: batch {self.batch_size} becomes {agreed}.")
        self.batch_size = agreed
        if self.context.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.context.device)
        return True

    def _save(self) -> None:
        self._watch.settle()
        states = self.context.ranks.gather(random_state.snapshot())
        if not self.context.ranks.first:
            return
        sums = {name: v.cpu() if isinstance(v, torch.Tensor) else v for name, v in self._sums.items()}
        self._saver.save(pack(self.stepper, self.position, self.batch_size, (sums, self._summed), states))

    def _resume(self) -> None:
        say = self._journal.say
        state = load(self.context.out, say)
        if state is None:
            return
        unpack(state, self.stepper, self.context.out)
        self.position = Position(*state["position"])
        self.batch_size = state["batch_size"]
        self._sums, self._summed = state["sums"]
        if len(state["random"]) != self.context.ranks.world:
            say(f"The checkpoint is of {len(state['random'])} ranks: random numbers begin anew, losses will differ.")
        else:
            random_state.restore(state["random"][self.context.ranks.rank])
        say(f"Going on after step {self.position.step}.")
