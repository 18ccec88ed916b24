"""Samples of a loader without workers are drawn where and when they were, if that makes a difference."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from hotlap.lever.catalog import background_fetch, loader_workers
from hotlap.lever.drawing import Drawing
from hotlap.testing.lever_target import LocalTarget

REASONS = {
    loader_workers: "the script changes what its samples are drawn from in mid-pass, which worker processes do not see",
    background_fetch: "its samples are drawn with a model that the steps in between may train",
}
LEVERS: list[tuple[Any, dict[str, Any]]] = [
    (loader_workers, {"workers": 1, "prefetch": 2, "torch_threads": None}),
    (background_fetch, {"depth": 2}),
]


class Holder(Dataset[Any]):
    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def __len__(self) -> int:
        return 16


class Scored(Holder):
    """Drawn with what the model makes of it."""

    def __getitem__(self, index: int) -> Any:
        with torch.no_grad():
            return self.model(torch.ones(1))


class Plain(Holder):
    """It does not draw with the model that it holds."""

    def __getitem__(self, index: int) -> Any:
        return torch.ones(1)


class Trainer:
    def __init__(self) -> None:
        self.model = nn.Linear(1, 1)

    def collate(self, rows: list[Any]) -> Any:
        return torch.stack(rows)

    def scored(self, rows: list[Any]) -> Any:
        return self.model(torch.stack(rows)).detach()


def scored(rows: list[Any], model: nn.Module) -> Any:
    return model(torch.stack(rows)).detach()


@pytest.mark.parametrize(("lever", "setting"), LEVERS)
def test_a_sample_is_drawn_with_the_model_as_it_is_then(lever: Any, setting: Any, tmp_path: Path) -> None:
    def losses() -> list[float]:
        torch.manual_seed(0)
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        found = []
        for x in DataLoader(Scored(model), batch_size=2):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    bare = losses()
    with LocalTarget(str(tmp_path)) as target:
        lever.apply(target, setting)
        assert losses() == bare
    assert target.reasons[-1] == REASONS[lever]


def test_only_a_model_that_is_drawn_with_counts() -> None:
    model = nn.Linear(1, 1)
    for loader, counts in (
        (DataLoader(Scored(model)), True),
        (DataLoader(Plain(model), collate_fn=functools.partial(scored, model=model)), True),
        (DataLoader(Plain(model), collate_fn=Trainer().scored), True),
        (DataLoader(Plain(model)), False),
        (DataLoader(Plain(model), collate_fn=Trainer().collate), False),
        (DataLoader(Scored(nn.Dropout())), False),  # a transform without parameters
    ):
        assert bool(Drawing(loader).weights()) == counts


def test_a_mean_of_weights_that_is_changed_in_place_is_seen(tmp_path: Path) -> None:
    """By the data of a parameter, which counts no change."""
    mean = nn.Linear(1, 1).requires_grad_(False)

    def sums() -> list[float]:
        mean.weight.data.fill_(1.0)
        found = []
        for x in DataLoader(Scored(mean), batch_size=2):
            found.append(x.sum().item())
            mean.weight.data.mul_(0.5)
        return found

    bare = sums()
    with LocalTarget(str(tmp_path)) as target:
        loader_workers.apply(target, LEVERS[0][1])
        assert sums() == bare
