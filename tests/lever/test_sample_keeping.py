"""What is kept of data sets that the script holds no more, past folds', is let go, and its room is the next one's."""

from __future__ import annotations

import gc
import itertools
import random
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset

from hotlap.lever.catalog import cache_sample
from hotlap.lever.file_cache import USAGE
from hotlap.lever.usage import Usage
from hotlap.testing.lever_target import LocalTarget

ROWS = 12


class Rows(Dataset[Any]):
    """Whole samples are kept of it."""

    def __init__(self) -> None:
        self.values = np.arange(ROWS * 500.0).reshape(ROWS, 500)

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(self.values[index])


class Parts(Rows):
    """Of this one, parts of samples."""

    def load(self, index: int) -> Any:
        return np.array(self.values[index])

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(self.load(index) * random.choice([1, -1]))


class Read:
    def __init__(self, values: Any) -> None:
        self.values = values

    def __call__(self, index: int) -> Any:
        return np.array(self.values[index])


class OfReader(Rows):
    """Of this one, what another object gives."""

    def __init__(self) -> None:
        super().__init__()
        self.read = Read(self.values)

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(self.read(index) * random.choice([1, -1]))


@pytest.fixture(autouse=True)
def _slow_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"QUICK_S": 0.0, "WORTH": 0.0, "LONGEST_LOOK_S": 10.0}.items():
        monkeypatch.setattr(f"hotlap.lever.part_memory.{name}", value)


def train(data: Any, epochs: int = 3, **options: Any) -> None:
    loader: DataLoader[Any] = DataLoader(data, batch_size=4, **options)
    weight = torch.nn.Parameter(torch.zeros(1))
    weight.grad = torch.zeros(1)
    optimizer = torch.optim.SGD([weight], 0.1)
    for _ in range(epochs):
        for _ in loader:
            optimizer.step()


@pytest.fixture
def target(tmp_path: Path) -> Iterator[LocalTarget]:
    with LocalTarget(str(tmp_path)) as found:
        cache_sample.apply(found, {"max_bytes": 1 << 24})
        yield found
    assert not found.problems


def room_taken(target: LocalTarget) -> int:
    """Units that the lever's cache counts."""
    return Usage(str(Path(target.scratch, USAGE)), 0).units()


WAYS: dict[str, dict[str, Any]] = {"a table": {}, "one by one": {"collate_fn": list}, "workers": {"num_workers": 1}}


@pytest.mark.parametrize(
    ("kind", "way"), [*itertools.product([Rows], WAYS), (Parts, "one by one"), (OfReader, "workers")]
)
def test_a_past_folds_data_set_and_what_was_kept_of_it_are_let_go(kind: Any, way: str, target: LocalTarget) -> None:
    alive: list[Any] = []
    rooms = []
    for _ in range(3):
        data = kind()
        alive.append(weakref.ref(data))
        train(data, 2, **WAYS[way])
        rooms.append(room_taken(target))
        del data
        gc.collect()  # the target's own hooks are in a cycle with what trains
    assert target.changes and not target.reasons
    assert [ref() is not None for ref in alive] == [False, False, True], "the last may come again"
    assert rooms[0] >= ROWS and len(set(rooms)) == 1, "the next one gets its room"


@pytest.mark.parametrize("kind", [Rows, Parts, OfReader])
def test_what_the_script_still_holds_stays_kept(kind: Any, target: LocalTarget) -> None:
    """A loader for each epoch, of two data sets in turn, and of a part of one."""
    both = [kind(), kind()]
    for _ in range(3):
        for data in (*both, Subset(both[0], range(6))):
            train(data, 1, collate_fn=list)
    assert room_taken(target) >= 2 * ROWS and not Path(target.scratch, f"{USAGE}.back").exists(), (
        "no room was given back"
    )


def test_a_data_set_that_is_iterated_without_its_loader_is_held(target: LocalTarget) -> None:
    batches = iter(DataLoader(Rows(), batch_size=4))
    first = next(batches)
    train(Rows())
    left = [first, *batches]
    want = [batch.tolist() for batch in DataLoader(Rows(), batch_size=4)]
    assert [batch.tolist() for batch in left] == want
