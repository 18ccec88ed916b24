"""Everything that a training needs to go on as if it had not stopped, as one dictionary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotlap_workloads.engine.checkpoint import fits
from hotlap_workloads.engine.optimise import load_optimizer
from hotlap_workloads.engine.order import Position
from hotlap_workloads.engine.stepper import Stepper

__all__ = ["pack", "unpack"]


def pack(
    stepper: Stepper,
    position: Position,
    batch_size: int,
    sums: tuple[dict[str, Any], int],
    random: list[dict[str, Any]],
) -> dict[str, Any]:
    """``sums`` are the scalars since the last line of progress, ``random`` the generators of each rank."""
    return {
        "objective": stepper.objective.state_dict(),
        "optimizer": stepper.optimizer.state_dict(),
        "schedule": stepper.schedule.state_dict(),
        "scaler": stepper.scaler.state_dict(),
        "position": [position.epoch, position.step, position.taken],
        "batch_size": batch_size,
        "sums": list(sums),
        "random": random,
    }


def unpack(state: dict[str, Any], stepper: Stepper, folder: Path) -> None:
    """Put weights, moments, schedule and scaler back. Raises WorkloadError for another model's checkpoint."""
    fits(state["objective"], stepper.objective.state_dict(), folder)
    stepper.objective.load_state_dict(state["objective"])
    load_optimizer(stepper.optimizer, state["optimizer"])
    stepper.schedule.load_state_dict(state["schedule"])
    stepper.scaler.load_state_dict(state["scaler"])
