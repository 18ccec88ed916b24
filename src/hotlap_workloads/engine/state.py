"""Everything that a training needs to go on as if it had not stopped, as one dictionary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotlap_workloads.engine.checkpoint import fits
from hotlap_workloads.engine.optimise import load_optimizer
from hotlap_workloads.engine.order import Position, RankBatches
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.stepper import Stepper
from hotlap_workloads.engine.task import Context, Task
from hotlap_workloads.errors import SettingsError

__all__ = ["pack", "trained_on", "unpack"]

KEPT = (
    *("batch_size", "accumulate", "optimizer", "lr", "lr_for_samples", "weight_decay", "momentum", "betas", "amsgrad"),
    *("seed", "drop_last"),
)
"""Settings that a checkpoint carries on. Others asked for at a resume would be of no effect, or, as seed and drop_last,
make other batches of the rest of the epoch than those of its beginning."""


def pack(
    stepper: Stepper,
    position: Position,
    planned_at: Position,
    batch_size: int,
    sums: list[list[Any]],
    random: list[dict[str, Any]],
) -> dict[str, Any]:
    """The state. ``planned_at`` is where the steps to come were counted, ``sums`` are the scalars since the last line
    and since the last point of the trackers, ``random`` the generators of each rank."""
    return {
        "world": len(random),
        "whole_epochs": True,
        "objective": stepper.objective.state_dict(),
        "optimizer": stepper.optimizer.state_dict(),
        "schedule": stepper.schedule.state_dict(),
        "scaler": stepper.scaler.state_dict(),
        "pace": stepper.pace,
        "position": [position.epoch, position.step, position.taken],
        "planned_at": [planned_at.epoch, planned_at.step, planned_at.taken],
        "batch_size": batch_size,
        "asked": _asked(stepper.settings),
        "sums": sums[0],
        "tracked": sums[1],
        "random": random,
    }


def trained_on(task: Task, context: Context) -> dict[str, Any]:
    """The data by what is cheap to know of them. Steps, batches and classes are those of so many rows."""
    return {"folder": context.named, "rows": len(task.train_set)}


def unpack(state: dict[str, Any], stepper: Stepper, task: Task, context: Context) -> None:
    """Put weights, moments, schedule and scaler back.

    Raises WorkloadError for another model's checkpoint, SettingsError for one of another number of ranks or of other
    data, for settings that differ from those it was made with, and for one whose epochs had fewer steps. Checkpoints of
    before do not say all of that.
    """
    folder, world = context.out, context.ranks.world
    _same_ranks(state.get("world", len(state["random"])), world, folder)
    _same_data(state.get("trained_on"), trained_on(task, context), context)
    _same(state.get("asked", {}), _asked(stepper.settings), folder)
    if not state.get("whole_epochs"):
        _had_whole_epochs(state, stepper.settings, task, world, folder)
    fits(state["objective"], stepper.objective.state_dict(), folder)
    stepper.objective.load_state_dict(state["objective"])
    load_optimizer(stepper.optimizer, state["optimizer"])
    stepper.pace = state.get("pace", stepper.pace)
    stepper.schedule.load_state_dict(state["schedule"])
    if state["scaler"]:  # none without fp16, and then it begins as in a new training
        stepper.scaler.load_state_dict(state["scaler"])


def _asked(settings: EngineSettings) -> dict[str, Any]:
    """The settings that are kept; not the batch size where a search finds it."""
    names = [name for name in KEPT if name != "batch_size" or not settings.search_batch_size]
    values = {name: getattr(settings, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _same_ranks(before: int, now: int, folder: Path) -> None:
    """Steps, the epoch's rest, the learning rate: all is counted in batches of all ranks together."""
    if before != now:
        how = f"torchrun --nproc-per-node {before}" if before > 1 else "without torchrun"
        raise SettingsError(
            f"The checkpoint in {folder} is of a training on {before} ranks, and this one has {now}.",
            f"Go on with {before} ({how}), or begin anew with another --out.",
        )


def _same_data(before: dict[str, Any] | None, now: dict[str, Any], context: Context) -> None:
    """The same data may be at another place. In the same place, quarantine may have left out what is damaged now."""
    if before is None:
        return
    was, here = before["folder"], now["folder"]
    moved, fewer = was != here, before["rows"] != now["rows"]
    if (moved and None in (was, here)) or (fewer and (moved or not context.quarantine)):
        first, then = (f"{one['folder'] or 'data made here'} ({one['rows']} samples)" for one in (before, now))
        raise SettingsError(
            f"The checkpoint in {context.out} is of a training on {first}, and this one is on {then}.",
            "Go on with the same data, or begin anew with another --out.",
        )
    if moved:
        context.say(f"Trained on {was} so far, and on {here} from here on.")


def _same(before: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    odd = [name for name in before if name in now and before[name] != now[name]]
    if odd:
        was, asked = (", ".join(f"{name}={values[name]}" for name in odd) for values in (before, now))
        raise SettingsError(
            f"The checkpoint in {folder} was made with {was}, and {asked} is asked for.",
            "Go on with the same values, or begin anew with another --out.",
        )


def _had_whole_epochs(state: dict[str, Any], s: EngineSettings, task: Task, world: int, folder: Path) -> None:
    """Older versions left out the batches at the end of an epoch that make no whole step, whatever ``drop_last`` said.

    Steps and the learning rate were counted by that: to go on with more steps an epoch would be another training.
    """
    if s.drop_last:
        return
    for begin in (Position(), Position(*state.get("planned_at", (0, 0, [])))):
        batches = len(RankBatches(task.order, s.seed, state["batch_size"], begin, 0, world, s.drop_last))
        if batches % s.accumulate:
            raise SettingsError(
                f"The checkpoint in {folder} was made by an older version, which left out the end of each epoch "
                f"({batches} batches, {s.accumulate} a step).",
                "Begin anew with another --out.",
            )
