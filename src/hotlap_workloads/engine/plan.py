"""How long a training is at its batch size: the steps of an epoch and of all, and what is due between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hotlap_workloads.engine.cadence import Cadences
from hotlap_workloads.engine.order import Position, RankBatches
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.task import Task
from hotlap_workloads.errors import WorkloadError

__all__ = ["Plan", "make_plan", "no_step", "worth_compiling"]


@dataclass(frozen=True)
class Plan:
    """Steps of an epoch, of all epochs, of the training (fewer where ``max_steps`` says so); the cadences in steps."""

    epoch_steps: int
    all_steps: int
    total_steps: int
    due: Cadences


def make_plan(task: Task, settings: EngineSettings, world: int, begin: Position, batch_size: int) -> Plan:
    """The plan of a training that has come to ``begin`` and goes on with ``batch_size`` on each of ``world`` ranks.

    Raises WorkloadError where the data give not one step.
    """
    s = settings

    def steps(at: Position) -> int:
        batches = len(RankBatches(task.order, s.seed, batch_size, at, 0, world, s.drop_last))
        return batches // s.accumulate if s.drop_last else -(-batches // s.accumulate)

    epoch_steps = steps(Position())
    if epoch_steps == 0:
        raise no_step(f"{len(task.train_set)} samples give", s, batch_size, world)
    left = steps(begin) if begin.taken else epoch_steps
    all_steps = begin.step + left + (s.epochs - begin.epoch - 1) * epoch_steps
    total_steps = min(all_steps, s.max_steps) if s.max_steps else all_steps
    due = Cadences.of(s, epoch_steps)
    if not getattr(task, "has_heavy", True):
        due = replace(due, heavy=0)
    return Plan(epoch_steps, all_steps, total_steps, due)


def worth_compiling(settings: EngineSettings, steps: int, say: Callable[[str], None]) -> EngineSettings:
    """The settings, without ``compile`` where a training of so many steps is too short for it."""
    if not settings.compile or steps >= settings.compile_from_steps:
        return settings
    say(
        f"Not compiled: {steps:,} steps would not earn back what that takes at the start "
        f"(compile_from_steps={settings.compile_from_steps})."
    )
    return replace(settings, compile=False)


def no_step(what: str, settings: EngineSettings, batch_size: int, world: int) -> WorkloadError:
    """The error of an epoch that is shorter than a step."""
    return WorkloadError(
        f"{what} not one step of {settings.accumulate} x {batch_size} on each of {world} ranks.", "Lower batch_size."
    )
