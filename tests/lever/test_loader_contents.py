"""What workers have copies of: a generator of random numbers is found, and a change is seen, or known not to be."""

from __future__ import annotations

import argparse
import array
import collections
import functools
import logging
import random
import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from lever_support import UNWATCHED
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset, default_collate

from hotlap.lever.loader_change import load_in_workers
from hotlap.lever.loader_contents import LoaderContents
from hotlap.testing.lever_target import LocalTarget

SETTING = {"workers": 2, "prefetch": 2, "torch_threads": None}
DICE = np.random.default_rng(0)
EPOCH = [0]
roll = DICE.random
toss = random.random


class Rows(Dataset[Any]):
    def __init__(self, held: Any = None) -> None:
        self.held = held

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        return float(index)


class OfGlobal(Rows):
    def __getitem__(self, index: int) -> Any:
        return DICE.random()


class OfFunction(Rows):
    def __getitem__(self, index: int) -> Any:
        return thrown()


def thrown() -> float:
    return roll()


class OfProcess(Rows):
    """Workers seed what the process has."""

    def __getitem__(self, index: int) -> Any:
        return toss() + random.random() + np.random.rand() + float(torch.rand(()))


class OfClass(Rows):
    dice = random.Random(1)

    def __getitem__(self, index: int) -> Any:
        return self.dice.random()


class Deep:
    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


def with_collate(collate: Any, **options: Any) -> DataLoader[Any]:
    return DataLoader(Rows(), 2, collate_fn=collate, **options)


def jittered(dice: Any, samples: Any) -> Any:
    return default_collate([s + dice.random() for s in samples])


def closed_over() -> Any:
    dice = random.Random(2)
    return lambda samples: default_collate([s + dice.random() for s in samples])


DRAWING: list[Callable[[], DataLoader[Any]]] = [
    lambda: DataLoader(Rows(random.Random(0))),
    lambda: DataLoader(Rows(np.random.default_rng(0))),
    lambda: DataLoader(Rows(np.random.RandomState(0))),
    lambda: DataLoader(Rows(torch.Generator())),
    lambda: DataLoader(Rows({"a": [Deep((1, random.Random(0)))]})),
    lambda: DataLoader(Subset(ConcatDataset([Rows(), Rows(random.Random(0).random)]), [0])),
    lambda: DataLoader(OfGlobal()),
    lambda: DataLoader(OfFunction()),
    lambda: DataLoader(OfClass()),
    lambda: with_collate(functools.partial(jittered, random.Random(3))),
    lambda: with_collate(closed_over()),
]


@pytest.mark.parametrize("make", DRAWING)
def test_copies_of_a_generator_would_draw_the_same(make: Any) -> None:
    loader, target = make(), LocalTarget("")
    before = dict(vars(loader))
    load_in_workers(target, loader, SETTING, UNWATCHED)
    assert vars(loader) == before and target.changes == 0
    assert len(target.reasons) == 1 and "each worker would draw the same" in target.reasons[0]


def test_what_workers_seed_or_the_script_has_in_workers_itself() -> None:
    assert LoaderContents(DataLoader(OfProcess())).generator is None
    loader: Any = DataLoader(OfGlobal(), num_workers=1)
    target = LocalTarget("")
    load_in_workers(target, loader, SETTING, UNWATCHED)
    assert loader.num_workers == 2 and not loader.persistent_workers, "they begin with the generator as it is then"


class Curriculum(Rows):
    def __getitem__(self, index: int) -> Any:
        return index + EPOCH[0]


class Config:
    level = 0


class OfConfig(Rows):
    def __getitem__(self, index: int) -> Any:
        return index + Config.level


class Settings(dict[str, Any]):
    pass


def edit(where: Any, value: int) -> None:
    where[1] = value


SEEN: list[tuple[Callable[[], Any], Callable[[Any, int], Any]]] = [
    (lambda: Rows(0), lambda data, value: setattr(data, "held", value)),
    (lambda: Rows([0, 0]), lambda data, value: edit(data.held, value)),
    (lambda: Rows(np.zeros(3_000_000)), lambda data, value: edit(data.held, value)),
    (lambda: Rows(torch.zeros(3)), lambda data, value: edit(data.held.numpy(), value)),
    (lambda: Rows(bytearray(3)), lambda data, value: edit(data.held, value)),
    (lambda: Rows(array.array("i", [0, 0])), lambda data, value: edit(data.held, value)),
    (lambda: Rows(collections.Counter({1: 0})), lambda data, value: edit(data.held, value)),
    (lambda: Rows(Settings({1: 0})), lambda data, value: edit(data.held, value)),
    (lambda: Rows(argparse.Namespace(a=0)), lambda data, value: setattr(data.held, "a", value)),
    (lambda: Rows(SimpleNamespace(a=0)), lambda data, value: setattr(data.held, "a", value)),
    (lambda: Rows(Deep(0)), lambda data, value: setattr(data.held, "held", value)),
    (Curriculum, lambda data, value: EPOCH.__setitem__(0, value)),
    (OfConfig, lambda data, value: setattr(Config, "level", value)),
]


@pytest.mark.parametrize(("make", "change"), SEEN)
def test_a_change_is_seen(make: Any, change: Any) -> None:
    data = make()
    change(data, 0)
    contents = LoaderContents(DataLoader(data))
    before = contents.look()
    assert before is not None and before.same_as(before)
    again = contents.look()
    assert again is not None and again.same_as(before)
    change(data, 1)
    after = contents.look()
    change(data, 0)
    assert after is not None and not after.same_as(before)


def generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    "held",
    [np.zeros(10_000_000), generator(), collections.Counter().items(), threading.local(), random.Random(0)],
    ids=["an array too large", "a generator", "a view", "what a thread has", "a generator of numbers"],
)  # fmt: skip
def test_where_a_change_could_be_missed_workers_begin_anew(held: Any) -> None:
    loader: Any = DataLoader(Rows(held), num_workers=1)
    assert LoaderContents(loader).look() is None
    target = LocalTarget("")
    load_in_workers(target, loader, {**SETTING, "workers": 1}, UNWATCHED)
    assert not loader.persistent_workers and target.changes == 0 and "begin anew" in target.reasons[0]


def test_what_never_changes_is_watched(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.zeros(3))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    fixed = [
        date(2020, 1, 1),
        np.float32(1),
        np.sqrt,
        torch.float32,
        logging.getLogger("a"),
        threading.Lock(),
        tmp_path,
    ]
    for held in (*fixed, fixed, mapped, object(), str, len, TensorDataset(torch.zeros(3)), lambda: mapped):
        assert LoaderContents(DataLoader(Rows(held))).look() is not None, held


def test_a_look_that_takes_long_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotlap.lever.loader_contents.LONGEST_LOOK_S", 0.0)
    assert LoaderContents(DataLoader(Rows())).look() is None
    monkeypatch.undo()
    monkeypatch.setattr("hotlap.lever.loader_contents._MOST_MET", 10)
    assert LoaderContents(DataLoader(Rows([Deep(n) for n in range(20)]))).look() is None


def test_rows_of_a_mapped_file_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "rows.npy", np.zeros(3))
    mapped = [np.load(tmp_path / "rows.npy", mmap_mode="r") for _ in range(2)]
    for name in ("tobytes", "__reduce__", "__reduce_ex__"):
        monkeypatch.setattr(np.memmap, name, lambda *args: pytest.fail("it was read"), raising=False)
    for held in (mapped, tuple(mapped), {"a": mapped[0], "b": 1}):
        assert LoaderContents(DataLoader(Rows(held))).look() is not None


def test_no_more_is_read_than_workers_take_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotlap.lever.loader_contents._MOST_BYTES", 2000)
    for few in ([np.zeros(90)] * 2, [np.zeros(90), np.ones(90)], np.zeros(200), torch.zeros(200), bytearray(900)):
        assert LoaderContents(DataLoader(Rows(few))).look() is not None
    for many in ([np.full(90, n) for n in range(4)], [[torch.zeros(200)], [torch.zeros(400)]], ["a" * 3000]):
        assert LoaderContents(DataLoader(Rows(many))).look() is None


def test_nothing_is_read_where_it_is_known_before_that_a_change_could_be_missed(monkeypatch: Any) -> None:
    contents = LoaderContents(DataLoader(Rows()))
    contents._reading.reason = "its parts lie too deep to follow"
    monkeypatch.setattr("hotlap.lever.loader_contents.Contents", lambda *args, **options: pytest.fail("it was read"))
    assert contents.look() is None


class OpensLate:
    """Has its file from when it is first asked for."""

    __slots__ = ("_file", "path")
    asked: ClassVar[list[str]] = []

    def __init__(self) -> None:
        self.path = "rows"

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return None


def test_what_opens_its_file_at_first_use_is_not_made_to() -> None:
    for held in (OpensLate(), [OpensLate(), OpensLate()]):
        contents = LoaderContents(DataLoader(Rows(held)))
        before = contents.look()
        assert before is not None and OpensLate.asked == []
        (held[0] if isinstance(held, list) else held)._file = 1
        after = contents.look()
        assert after is not None and not after.same_as(before) and OpensLate.asked == []


def test_tables_of_arrow_never_change() -> None:
    tables = pytest.importorskip("datasets").Dataset.from_dict({"a": [1, 2]})
    contents = LoaderContents(DataLoader(tables))
    before = contents.look()
    assert before is not None
    tables.set_format("torch")
    after = contents.look()
    assert after is not None and not after.same_as(before)
