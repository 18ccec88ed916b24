"""What the script changes of its data set in mid-pass holds from the next batch on, as without workers."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hotlap.lever.catalog import loader_workers
from hotlap.testing.lever_target import LocalTarget

LEVEL = 0
LEVELS = {"level": 0}
OPTIONS = SimpleNamespace(level=0)


class Settings:
    level = 0


class Curriculum(Dataset[Any]):
    """Samples tell the level at which they were drawn."""

    def __init__(self) -> None:
        self.level = 0
        self.factors = {"level": 0}
        self.table = torch.zeros(1)

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> tuple[int, float]:
        around = LEVEL + LEVELS["level"] + Settings.level + OPTIONS.level
        return index, self.level + self.factors["level"] + self.table.item() + around


def by_attribute(data: Curriculum) -> None:
    data.level = 1


def by_a_key(data: Curriculum) -> None:
    data.factors["level"] = 1


def in_place(data: Curriculum) -> None:
    data.table += 1


def by_a_global(data: Curriculum) -> None:
    global LEVEL
    LEVEL = 1


def by_a_table_of_the_module(data: Curriculum) -> None:
    LEVELS["level"] = 1


def by_options(data: Curriculum) -> None:
    OPTIONS.level = 1


def by_a_class(data: Curriculum) -> None:
    Settings.level = 1


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    yield
    global LEVEL
    LEVEL = LEVELS["level"] = OPTIONS.level = Settings.level = 0


CHANGES = [by_attribute, by_a_key, in_place, by_a_global, by_a_table_of_the_module, by_options, by_a_class]


@pytest.fixture
def target(tmp_path: Path) -> Iterator[LocalTarget]:
    with LocalTarget(str(tmp_path)) as target:
        loader_workers.apply(target, {"workers": 2, "prefetch": 2, "torch_threads": None})
        yield target
    assert target.problems == []


def run(loader: Any, change: Any, epochs: int = 3) -> list[list[tuple[list[int], list[float]]]]:
    """The batches of each epoch; in the third batch of the second the data set becomes harder."""
    out = []
    for epoch in range(epochs):
        out.append([])
        for number, (index, level) in enumerate(loader):
            out[-1].append((index.tolist(), level.tolist()))
            if (epoch, number) == (1, 2):
                change(loader.dataset)
    return out


@pytest.mark.parametrize("change", CHANGES)
def test_batches_are_those_without_workers(target: LocalTarget, change: Any) -> None:
    others = set(multiprocessing.active_children())
    loader = DataLoader(Curriculum(), batch_size=3)
    found = run(loader, change)
    with_none = [[([n, n + 1, n + 2], [0.0] * 3) for n in range(0, 24, 3)]] * 3
    expected = [[(index, [float(e > 1 or (e == 1 and k > 2))] * 3) for k, (index, _) in enumerate(epoch)]
                for e, epoch in enumerate(with_none)]  # fmt: skip
    assert found == expected
    assert ["in mid-pass" in reason for reason in target.reasons] == [True]
    assert loader.num_workers == 0 and not set(multiprocessing.active_children()) - others


def test_a_loader_that_nobody_changes_keeps_its_workers(target: LocalTarget) -> None:
    loader = DataLoader(Curriculum(), batch_size=3)
    found = run(loader, lambda data: None)
    assert [index for epoch in found for index, _ in epoch] == [[n, n + 1, n + 2] for n in range(0, 24, 3)] * 3
    assert loader.num_workers == 2 and target.reasons == [] and len(multiprocessing.active_children()) == 2


def test_a_change_between_passes_begins_new_workers(target: LocalTarget) -> None:
    loader = DataLoader(Curriculum(), batch_size=3)
    list(loader)
    by_attribute(loader.dataset)  # type: ignore[arg-type]
    assert {value for _, level in loader for value in level.tolist()} == {1.0}
    assert loader.num_workers == 2 and target.reasons == []


def test_workers_that_the_script_has_asked_for_are_its_own(target: LocalTarget) -> None:
    loader = DataLoader(Curriculum(), batch_size=3, num_workers=1)
    assert {value for epoch in run(loader, by_attribute, 2) for _, level in epoch for value in level} == {0.0}
    assert target.reasons == []


def test_a_pass_that_is_left_early_and_another_beside(target: LocalTarget) -> None:
    loader = DataLoader(Curriculum(), batch_size=3)
    first, second = iter(loader), iter(loader)
    assert next(first)[0].tolist() == next(second)[0].tolist() == [0, 1, 2]
    by_attribute(loader.dataset)  # type: ignore[arg-type]
    for one in (first, second):
        assert [[index.tolist()[0], level.tolist()[0]] for index, level in one] == [[n, 1.0] for n in range(3, 24, 3)]
    assert [level.tolist()[0] for _, level in loader] == [1.0] * 8


def test_an_iterator_that_somebody_has_wrapped_is_left(tmp_path: Path) -> None:
    """As a lever that brings batches to the device does."""
    with LocalTarget(str(tmp_path)) as target:
        target.wrap_iterator(lambda loader, iterator: map(list, iterator))
        loader_workers.apply(target, {"workers": 1, "prefetch": 2, "torch_threads": None})
        loader = DataLoader(Curriculum(), batch_size=3)
        assert [index.tolist()[0] for index, _ in loader] == list(range(0, 24, 3))
    assert target.problems == [] and target.reasons == []
