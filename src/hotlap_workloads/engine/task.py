"""What a training must bring; the engine brings everything else."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import nn

from hotlap_workloads.engine.machine import Machine
from hotlap_workloads.engine.order import Draw, Order
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.parts.writing import writing

__all__ = ["MADE_DATA", "Context", "Preset", "Task", "TrainSet", "Workload"]

S = TypeVar("S", bound=EngineSettings)

MADE_DATA = "made_data"
"""Of the run's folder, that of the small set that a training makes itself."""


class TrainSet(Protocol):
    """Loads one sample, or a whole batch where it also has ``__getitems__(draws)``."""

    def __len__(self) -> int: ...

    def __getitem__(self, draw: Draw) -> Any: ...


@dataclass(frozen=True)
class Context:
    """Where and with whom a task is built. ``data`` is None when the training makes its own, or a setting names them.

    ``source`` is the folder that was named, where that is not ``data``: those are a copy, or a setting named it.
    """

    device: torch.device
    out: Path
    data: Path | None = None
    ranks: Ranks = field(default_factory=Ranks)
    quarantine: bool = False
    say: Callable[[str], None] = print
    source: Path | None = None

    @property
    def named(self) -> str | None:
        """The data's folder as it was named, from the root; None when the training makes its own."""
        folder = self.source or self.data
        return None if folder is None else os.path.abspath(folder)

    def data_or_made(self, make: Callable[[Path], object]) -> Path:
        """The data's folder, or that of a small set, which the first rank makes while the others wait."""
        if self.data is not None:
            return self.data
        folder = self.out / MADE_DATA
        if self.ranks.first:
            with writing(folder, "Remove it, or name another --out."):
                make(folder)
        self.ranks.wait()
        return folder


class Task(Protocol):
    """One training, assembled.

    objective  maps a batch on the device to {"loss": scalar, ...other scalars}; its parameters are trained
    stages     modules whose activations may be computed again in backward
    collate    samples to a batch, None for torch's default

    A task may say more: ``has_heavy``, False where its data have nothing for the heavy evaluation, which then is never
    due; ``batch_most``, the largest batch that its loss takes, 0 for any; ``heaviest(batch_size)``, the draws that take
    the most memory. The two last are for the batch-size search.
    """

    objective: nn.Module
    train_set: TrainSet
    order: Order
    stages: Sequence[nn.Module]
    collate: Callable[[list[Any]], Any] | None

    def evaluate(self, heavy: bool) -> dict[str, float]:
        """Metrics of the model now. Called in eval and inference mode; must not draw global random numbers."""
        ...


@dataclass(frozen=True)
class Preset:
    """``make(machine)`` gives the settings; ``why`` says in a sentence what it is for."""

    make: Callable[[Machine], EngineSettings]
    why: str


class Workload(Protocol):
    """A training by name.

    One whose published sizes are too much for self-made data has ``for_made_data(settings, machine)`` too: the preset's
    settings as they are without ``--data``. Whatever the user sets comes after it.

    One whose published configurations mean something else by a key has ``translated(values, say)``: the values of
    such a file by its own names, mended, with a line for whatever is left out. ``aliases`` come after it.
    """

    name: str
    summary: str
    presets: Mapping[str, Preset]
    aliases: Mapping[str, str]

    def build(self, settings: Any, context: Context) -> Task:
        """Read the data and make the model."""
        ...
