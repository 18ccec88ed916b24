"""A training small enough for milliseconds: noisy points, dropout, two classes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hotlap_workloads.engine import random_state
from hotlap_workloads.engine.loop import Trainer
from hotlap_workloads.engine.order import Draw, Shuffled
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.task import Context


class Points:
    """Row r, augmented with the draw's own random numbers."""

    def __init__(self, bad_row: int = -1, rows: int = 48) -> None:
        self.bad_row, self.rows = bad_row, rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, draw: Draw) -> tuple[torch.Tensor, int]:
        noise = torch.randn(1, 4, 4, generator=torch.Generator().manual_seed(draw.seed))
        point = noise + draw.row % 2
        return (point * float("nan") if draw.row == self.bad_row else point), draw.row % 2


class Objective(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.stage = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(dropout))
        self.head = nn.Conv2d(8, 2, 2)

    def forward(self, batch: tuple[torch.Tensor, torch.Tensor]) -> dict[str, torch.Tensor]:
        points, labels = batch
        logits = self.head(self.stage(points)).flatten(1).float()
        return {"loss": nn.functional.cross_entropy(logits, labels), "mean": logits.mean()}


@dataclass
class Toy:
    objective: nn.Module
    train_set: Any
    order: Shuffled
    stages: Sequence[nn.Module]
    collate: Any = None

    def evaluate(self, heavy: bool) -> dict[str, float]:
        return {"heavy" if heavy else "light": float(sum(p.sum() for p in self.objective.parameters()))}


def trainer(out: Path, settings: EngineSettings, bad_row: int = -1, dropout: float = 0.3, ranks: Ranks | None = None):
    """A trainer of the toy, seeded as a session would."""
    out.mkdir(exist_ok=True, parents=True)
    random_state.seed_all(settings.seed)
    objective = Objective(dropout)
    points = Points(bad_row)
    toy = Toy(objective, points, Shuffled(len(points), settings.seed), [objective.stage])
    lines: list[str] = []
    made = Trainer("toy", toy, settings, Context(torch.device("cpu"), out, ranks=ranks or Ranks(), say=lines.append))
    made.lines = lines  # type: ignore[attr-defined]
    return made


def losses(out: Path) -> dict[int, float]:
    """Loss by step, as the run wrote them."""
    rows = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return {row["step"]: row["loss"] for row in rows if "loss" in row}
