"""A task whose evaluation is what a scorer measures, of one set of data or of a heavy one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import nn

from hotlap_workloads.engine.order import Order
from hotlap_workloads.engine.task import TrainSet

__all__ = ["ScoredTask", "Scorer"]


class Scorer(Protocol):
    """Has the model and the data that it is measured on."""

    def measure(self) -> dict[str, float]: ...


@dataclass
class ScoredTask:
    """What the engine trains. ``scorer(heavy)`` opens the data of that evaluation, when they are first needed.

    ``batch_most`` is the largest batch that the loss takes, 0 for any.
    """

    objective: nn.Module
    train_set: TrainSet
    order: Order
    stages: Sequence[nn.Module]
    collate: Callable[[list[Any]], Any] | None
    scorer: Callable[[bool], Scorer]
    batch_most: int = 0

    def evaluate(self, heavy: bool) -> dict[str, float]:
        measured = self.scorer(heavy).measure()
        return {f"heavy_{name}": value for name, value in measured.items()} if heavy else measured
