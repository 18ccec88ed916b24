"""A model that is trained in evaluation mode is no model that is validated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hotlap.lever.catalog import validation_no_grad
from hotlap.testing.lever_target import LocalTarget

DATA = TensorDataset(torch.randn(8, 3, generator=torch.Generator().manual_seed(0)))


class Training:
    """A backbone and a head, each a network of its own; whether the backbone had gradients in each step."""

    def __init__(self) -> None:
        self.backbone, self.head = nn.Linear(3, 3), nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD([*self.backbone.parameters(), *self.head.parameters()], lr=0.1)
        self.loader = DataLoader(DATA, batch_size=4)
        self.updated: list[bool] = []

    def epoch(self, batches: Any = None) -> None:
        for (x,) in self.loader if batches is None else batches:
            loss: Any = self.head(self.backbone(x)).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.updated.append(self.backbone.weight.grad is not None)
            self.optimizer.step()

    def validate(self, loader: Any) -> bool:
        """Whether a graph was recorded."""
        self.backbone.eval()
        recorded = [self.backbone(x).requires_grad for (x,) in loader]
        self.backbone.train()
        return any(recorded)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[LocalTarget]:
    with LocalTarget(str(tmp_path)) as target:
        validation_no_grad.apply(target, {})
        yield target
    assert target.problems == []


def test_a_backbone_that_is_kept_in_evaluation_mode_misses_no_update(target: LocalTarget) -> None:
    training = Training()
    training.epoch()
    training.backbone.eval()
    training.head.train()  # for this target: no validation is open now
    training.epoch()
    for _ in range(2):
        training.head.train()
        training.backbone.eval()
        training.epoch([(x[None],) for (x,) in DATA])
    assert training.updated == [True] * len(training.updated) and target.changes == 0


def test_the_epoch_in_which_it_is_put_there_first(target: LocalTarget) -> None:
    training = Training()
    training.epoch()
    training.head.train()
    training.backbone.eval()
    training.epoch()
    assert training.updated == [True] * 4 and target.changes == 0


def test_a_validation_in_between_is_one(target: LocalTarget) -> None:
    training = Training()
    own = DataLoader(DATA, batch_size=2)
    for _ in range(3):
        training.epoch()
        assert not training.validate(own)
    batches = iter(training.loader)
    training.epoch([next(batches)])
    assert not training.validate(own), "the pass that is under way has begun before it"
    training.epoch(batches)
    assert training.validate(training.loader), "it may be a training: nothing else tells"
    assert not training.validate(own) and not training.validate([(torch.ones(2, 3),)])
    assert target.changes == 1


def test_a_look_at_the_data_before_the_training_changes_nothing(target: LocalTarget) -> None:
    """A sanity validation, of which nobody knows yet that it is one."""
    training = Training()
    own = DataLoader(DATA, batch_size=2)
    training.epoch([next(iter(training.loader))])
    training.backbone.eval()
    training.head.train()
    for (x,) in own:
        training.backbone(x)
    training.backbone.train()
    training.epoch()
    assert not training.validate(own)
