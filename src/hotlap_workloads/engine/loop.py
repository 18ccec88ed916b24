"""The training loop: steps, and what is due between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from hotlap_workloads.engine import random_state
from hotlap_workloads.engine.cadence import Cadences
from hotlap_workloads.engine.checkpoint import CURRENT, Saver, load, load_weights
from hotlap_workloads.engine.journal import Journal
from hotlap_workloads.engine.loader import Feeder
from hotlap_workloads.engine.loss_watch import LossWatch
from hotlap_workloads.engine.memory import clean_up, forget_peak, lowered, used_frac
from hotlap_workloads.engine.optimise import check_least_rate
from hotlap_workloads.engine.order import Position
from hotlap_workloads.engine.plan import Plan, make_plan, no_step, worth_compiling
from hotlap_workloads.engine.profiler import profiler_window
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.state import pack, trained_on, unpack
from hotlap_workloads.engine.stepper import Stepper
from hotlap_workloads.engine.stop_signal import StopSignal
from hotlap_workloads.engine.task import Context, Task
from hotlap_workloads.engine.throughput import Window, progress_line

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
        self._result, self._stop, self._took_frac = Result(), StopSignal(context.ranks.first), 0.0
        self._owed: list[bool] = []

    def _plan(self, begin: Position, batch_size: int) -> Plan:
        """Count the steps that come after ``begin``."""
        plan = make_plan(self.task, self.settings, self.context.ranks.world, begin, batch_size)
        self.batch_size, self._planned_at = batch_size, begin
        self.epoch_steps, self.total_steps, self._due = plan.epoch_steps, plan.total_steps, plan.due
        return plan

    def run(self) -> Result:
        """Train to the end, from the last checkpoint where there is one."""
        check_least_rate(self.settings, self.context.ranks.world)
        with self._stop:
            self._resume()  # first: a checkpoint of other settings is refused before anything is written
            context = self.context
            who, where = (self._name, self.settings), (context.named, self.position.step)
            self._journal = Journal(context.out, *who, context.ranks.first, context.say, *where)
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
        self._evaluate_owed()
        while self.position.step < self.total_steps:
            self._epoch(profiler)
        self._save()  # first: what a task keeps of an evaluation that the end alone asks for is no part of the training
        if not self._result.metrics or not Cadences.due(self._due.evaluate, self.position.step):
            self._evaluate(heavy=False)
        self._saver.wait()
        if self.settings.track_model:
            self._journal.artefact(self.context.out / CURRENT)

    def _epoch(self, profiler: Any) -> None:
        """The rest of this epoch."""
        for micro_batches, rows in self._steps():
            self._step(micro_batches, rows)
            if profiler is not None:
                profiler.step()
            if self._between_steps() or self.position.step >= self.total_steps:
                return
        if not self.position.taken:  # nor will any other epoch give one
            what = f"Epoch {self.position.epoch + 1} gives"
            raise no_step(what, self.settings, self.batch_size, self.context.ranks.world)
        self.position.next_epoch()

    def _steps(self) -> Iterator[tuple[list[Any], list[int]]]:
        return self._feeder.steps(self.position, self.batch_size)

    def _step(self, micro_batches: list[Any], rows: list[int]) -> None:
        windows = [self._shown, self._tracked] if self._journal.tracks else [self._shown]
        before = self.stepper.moved() if self.settings.on_nan == "skip" else []
        means: dict[str, Any] = self.stepper.forward_backward(micro_batches, rows)
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
        self.position.count(self.batch_size, len(rows))
        samples = sum(rows) * self.context.ranks.world
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
        self._owed = [heavy for heavy, every in self._due.evaluations if due(every, step)]
        if due(self._due.checkpoint, step):  # first: what ends the training within an evaluation costs no step
            self._save()
        self._evaluate_owed()
        if due(self._due.cleanup, step):
            clean_up(self.context.device)
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
        load_weights(self.context.out, self.stepper.objective, self.context.say)
        return self.stepper.judged(use)

    def _evaluate_owed(self) -> None:
        """The evaluations of this step that are not done yet; a stop that is asked for already waits for none."""
        if self._owed:
            self._stop_if_asked()
        for heavy in tuple(self._owed):
            self._evaluate(heavy)
            self._owed.remove(heavy)

    def _evaluate(self, heavy: bool) -> None:
        self._watch.settle()
        self._took_frac = self._peak_frac()
        self.context.ranks.share(self.stepper.objective.buffers())  # norms have seen each rank's own last batch
        metrics = self.stepper.judged(lambda: self.task.evaluate(heavy))
        if self._due.memory:
            forget_peak(self.context.device)
        self._result.metrics.update(metrics)
        self._journal.say(f"Step {self.position.step}  " + "  ".join(f"{k} {v:.4f}" for k, v in metrics.items()))
        self._journal.write(self.position.step, metrics)
        self._journal.track(self.position.step, metrics)

    def _stop_if_asked(self) -> None:
        ranks = self.context.ranks
        if ranks.world > 1 and self.position.step % AGREE_EVERY_STEPS:
            return
        if ranks.any(self._stop.asked, self.context.device):
            self._save(stops=True)
            self._saver.wait()
            raise self._stop.stopped(self.position.step)

    def _peak_frac(self) -> float:
        """The share of the device's memory that training took since the batch was lowered, evaluations left out."""
        return max(self._took_frac, self.memory(self.context.device) or 0.0)

    def _lower_batch(self) -> bool:
        """The guard: a smaller batch once the memory is nearly full. All ranks take the smallest."""
        ceiling, before = self.settings.memory_ceiling_frac, self.batch_size
        mine = lowered(before, self._peak_frac(), ceiling, self.task.order.grain)
        agreed, steps = min(self.context.ranks.gather(mine)), self.total_steps
        if agreed == before:
            return False
        self.stepper.repace(self._plan(self.position.copy(), agreed).all_steps - self.position.step)
        self._journal.say(
            f"Memory above {ceiling} of the device: batch {before} becomes {agreed}, "
            f"and the {steps} steps of the training become {self.total_steps}."
        )
        forget_peak(self.context.device)
        self._took_frac = 0.0
        return True

    def _save(self, stops: bool = False) -> None:
        """A checkpoint. Of one that a kill follows, the heavy evaluation is not owed: that may be what brought it."""
        self._watch.settle()
        states = self.context.ranks.gather(random_state.snapshot())
        if self.context.ranks.first:
            sums = [self._shown.state(), self._tracked.state()]
            state = pack(self.stepper, self.position, self._planned_at, self.batch_size, sums, states)
            owed = {"owes_evaluation": False in self._owed, "owes_heavy": stops and True in self._owed}
            data = trained_on(self.task, self.context)
            self._saver.save(state | {"skipped": self._watch.skipped, "trained_on": data, **owed})

    def _resume(self) -> None:
        say = self.context.say
        if (state := load(self.context.out, say, set_aside=self.context.ranks.first)) is None:
            return
        unpack(state, self.stepper, self.task, self.context)
        self.position = Position(*state["position"])
        self._plan(Position(*state.get("planned_at", (0, 0, []))), state["batch_size"])
        for window, sums in ((self._shown, state["sums"]), (self._tracked, state.get("tracked", [{}, 0]))):
            window.restore(sums)
        self._watch.skipped = state.get("skipped", 0)
        owed = {False: "owes_evaluation", True: "owes_heavy"}
        self._owed = [heavy for heavy, key in owed.items() if state.get(key)]
        random_state.restore(state["random"][self.context.ranks.rank])
        say(f"Going on after step {self.position.step}.")
