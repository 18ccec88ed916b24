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
from hotlap_workloads.engine.memory import forget_peak, lowered, used_frac
from hotlap_workloads.engine.order import Position
from hotlap_workloads.engine.plan import Plan, make_plan, no_step, worth_compiling
from hotlap_workloads.engine.profiler import profiler_window
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.state import pack, unpack
from hotlap_workloads.engine.stepper import Stepper, autocast
from hotlap_workloads.engine.stop_signal import StopSignal
from hotlap_workloads.engine.task import Context, Task
from hotlap_workloads.engine.throughput import Window, progress_line
from hotlap_workloads.errors import WorkloadError

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
        self.memory: Callable[[torch.device], float | None] = used_frac
        self._feeder = Feeder(task, settings, context.ranks, context.device)
        self._plan(Position(), settings.batch_size)
        settings = worth_compiling(settings, self.total_steps, context.say)
        self.stepper = Stepper(task, settings, context.device, context.ranks, self.epoch_steps)
        self._name = name
        self._saver = Saver(context.out, settings.checkpoint_in_background)
        self._watch = LossWatch(settings.on_nan, context.out, context.ranks, context.device)
        self._shown, self._tracked = Window(), Window()
        self._result, self._owes_evaluation, self._stop = Result(), False, StopSignal(context.ranks.first)

    def _plan(self, begin: Position, batch_size: int) -> Plan:
        """Count the steps that come after ``begin``."""
        plan = make_plan(self.task, self.settings, self.context.ranks.world, begin, batch_size)
        self.batch_size, self._planned_at = batch_size, begin
        self.epoch_steps, self.total_steps, self._due = plan.epoch_steps, plan.total_steps, plan.due
        return plan

    def run(self) -> Result:
        """Train to the end, from the last checkpoint where there is one."""
        with self._stop:
            self._resume()  # first: a checkpoint of other settings is refused before anything is written
            context = self.context
            self._journal = Journal(context.out, self._name, self.settings, context.ranks.first, context.say)
            failed = True
            try:
                with profiler_window(self.settings, context) as profiler:
                    self._train(profiler)
                failed = False
            finally:
                self._journal.close(failed)
        self._result.steps, self._result.skipped = self.position.step, self._watch.skipped
        return self._result

    def _train(self, profiler: Any) -> None:
        self.stepper.objective.train()
        if self._owes_evaluation:
            self._evaluate(heavy=False)
        while self.position.step < self.total_steps:
            self._epoch(profiler)
        self._watch.settle()
        if not self._result.metrics or not Cadences.due(self._due.evaluate, self.position.step):
            self._evaluate(heavy=False)
        self._save()
        self._saver.wait()
        if self.settings.track_model:
            self._journal.artefact(self.context.out / CURRENT)

    def _epoch(self, profiler: Any) -> None:
        """The rest of this epoch."""
        for micro_batches in self._steps():
            self._step(micro_batches)
            if profiler is not None:
                profiler.step()
            if self._between_steps() or self.position.step >= self.total_steps:
                return
        if not self.position.taken:  # nor will any other epoch give one
            what = f"Epoch {self.position.epoch + 1} gives"
            raise no_step(what, self.settings, self.batch_size, self.context.ranks.world)
        self.position.next_epoch()

    def _steps(self) -> Iterator[list[Any]]:
        group: list[Any] = []
        for micro_batch in self._feeder.open(self.position, self.batch_size):
            group.append(micro_batch)
            if len(group) == self.settings.accumulate:
                yield group
                group = []

    def _step(self, micro_batches: list[Any]) -> None:
        windows = [self._shown, self._tracked] if self._journal.tracks else [self._shown]
        before = self.stepper.moved() if self.settings.on_nan == "skip" else []
        means: dict[str, Any] = self.stepper.forward_backward(micro_batches)
        if self._watch.must_skip(means["loss"]):
            self.stepper.leave_out(before)
        else:
            self._watch.look(self.position.step + 1, means["loss"], micro_batches)
            self.stepper.update()
            if self.settings.read_loss_every_step:
                means = {name: value.item() for name, value in means.items()}
            for window in windows:
                window.add(means)
        self.position.step += 1
        self.position.count(self.batch_size, self.settings.accumulate)
        samples = self.batch_size * self.settings.accumulate * self.context.ranks.world
        for window in windows:
            window.throughput.add(samples)
        self._result.samples += samples

    def _between_steps(self) -> bool:
        """Whatever is due after this step. True when the epoch's loader must be opened anew."""
        step, due = self.position.step, Cadences.due
        if due(self._due.show, step):
            self._show()
        if self._journal.tracks and due(self._due.track, step):
            self._journal.track(step, self._values(self._tracked))
        self._owes_evaluation = due(self._due.evaluate, step)
        if due(self._due.checkpoint, step):  # first: what ends the training within an evaluation costs no step
            self._save()
        for heavy, every in ((False, self._due.evaluate), (True, self._due.heavy)):
            if due(every, step):
                self._evaluate(heavy)
        if due(self._due.cleanup, step):
            gc.collect()
            if self.context.device.type == "cuda":
                torch.cuda.empty_cache()
        self._stop_if_asked()
        return due(self._due.memory, step) and self._lower_batch()

    def _show(self) -> None:
        """The mean of each scalar since the last line, read from the device now."""
        values = self._values(self._shown)
        step, rate = self.position.step, values["samples_per_s"]
        if "loss" in values:
            per_step = self.batch_size * self.settings.accumulate * self.context.ranks.world
            eta_s = (self.total_steps - step) * per_step / rate
            where = self.position.epoch + 1, step, self.total_steps
            self._journal.say(progress_line(rate, values["loss"], *where, eta_s))
        self._journal.write(step, values)

    def _values(self, window: Window) -> dict[str, float]:
        return {**window.take(), "lr": float(self.stepper.schedule.get_last_lr()[0])}

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
        self.context.ranks.share(self.stepper.objective.buffers())  # norms have seen each rank's own last batch
        metrics = self._judged(lambda: self.task.evaluate(heavy))
        self._owes_evaluation &= heavy
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
            raise self._stop.stopped(self.position.step)

    def _lower_batch(self) -> bool:
        """The guard: a smaller batch once the memory is nearly full. All ranks take the smallest."""
        used, ceiling, before = self.memory(self.context.device), self.settings.memory_ceiling_frac, self.batch_size
        mine = before if used is None else lowered(before, used, ceiling, self.task.order.grain)
        agreed, steps = min(self.context.ranks.gather(mine)), self.total_steps
        if agreed == before:
            return False
        self.stepper.repace(self._plan(self.position.copy(), agreed).all_steps - self.position.step)
        self._journal.say(
            f"Memory above {ceiling} of the device: batch {before} becomes {agreed}, "
            f"and the {steps} steps of the training become {self.total_steps}."
        )
        forget_peak(self.context.device)
        return True

    def _save(self) -> None:
        self._watch.settle()
        states = self.context.ranks.gather(random_state.snapshot())
        if self.context.ranks.first:
            sums = [self._shown.state(), self._tracked.state()]
            state = pack(self.stepper, self.position, self._planned_at, self.batch_size, sums, states)
            self._saver.save(state | {"skipped": self._watch.skipped, "owes_evaluation": self._owes_evaluation})

    def _resume(self) -> None:
        say = self.context.say
        if (state := load(self.context.out, say, set_aside=self.context.ranks.first)) is None:
            return
        unpack(state, self.stepper, self.context.out, self.context.ranks.world)
        self.position = Position(*state["position"])
        self._plan(Position(*state.get("planned_at", (0, 0, []))), state["batch_size"])
        for window, sums in ((self._shown, state["sums"]), (self._tracked, state.get("tracked", [{}, 0]))):
            window.restore(sums)
        self._watch.skipped = state.get("skipped", 0)
        self._owes_evaluation = state.get("owes_evaluation", False)
        random_state.restore(state["random"][self.context.ranks.rank])
        say(f"Going on after step {self.position.step}.")
