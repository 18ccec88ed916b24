"""Whole samples that are kept are those of the script's own code, whatever changes around them, or they are let go."""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, default_collate

from hotlap.lever.catalog import cache_calls, cache_sample
from hotlap.lever.file_cache import FileCache
from hotlap.lever.kept_results import AGAIN
from hotlap.lever.sample_table import SampleTable
from hotlap.lever.witness import Witness
from hotlap.testing.lever_target import LocalTarget

ROWS = 12
OPTIONS = SimpleNamespace(offset=0)
RARE = {"offset": 0}


class Rows(Dataset[Any]):
    def __init__(self, rows: int = ROWS) -> None:
        self.rows = rows
        self.array = np.arange(rows)

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> Any:
        return torch.tensor(int(self.array[index]))


class Doubled(Rows):
    """What it asks its parent for is no sample of its own."""

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__((index + 1) % self.rows) * 10


class Wrapped(Subset[Any]):
    """A Subset of the script's own class."""


def epochs(data: Any, count: int = 2, **options: Any) -> list[Any]:
    loader: DataLoader[Any] = DataLoader(data, **{"batch_size": 4, **options})
    return [
        [torch.as_tensor(s).tolist() for s in batch] if isinstance(batch, list) else batch.tolist()
        for _ in range(count)
        for batch in loader
    ]


def with_lever(folder: Path, run: Callable[[], Any]) -> tuple[Any, LocalTarget]:
    with LocalTarget(str(folder)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        found = run()
    assert not target.problems
    return found, target


def same(folder: Path, run: Callable[[], Any], changes: int | None = 1) -> LocalTarget:
    """What ``run`` gives with the lever is what it gives without."""
    want = run()
    found, target = with_lever(folder, run)
    assert found == want
    assert changes is None or target.changes == changes
    return target


@pytest.mark.parametrize("collate", [list, None], ids=["one by one", "a table"])
def test_a_sample_of_the_parent_is_none_of_its_childs(collate: Any, tmp_path: Path) -> None:
    def both() -> Any:
        parent, child = Rows(), Doubled()
        return [epochs(data, 2, collate_fn=collate) for data in (parent, child, child)]

    same(tmp_path, both, 2)


class OfBase(Dataset[Any]):
    """Another data set's samples are part of its own: where that one is kept as well, each is compared by itself."""

    def __init__(self, base: Any) -> None:
        self.base = base

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, index: int) -> Any:
        return self.base[index] + 100


def test_a_data_set_within_another_that_is_kept(tmp_path: Path) -> None:
    def both() -> Any:
        base = Rows()
        found = [*epochs(base, collate_fn=list), *epochs(OfBase(base), collate_fn=list)]
        base.array[:] = 7
        return [*found, *epochs(OfBase(base), 2, collate_fn=list), *epochs(base, collate_fn=list)]

    same(tmp_path, both, None)


class OfFiles(Dataset[Any]):
    """A label of each sample lies in a file of its own."""

    def __init__(self, folder: Path, load: Callable[[Path], Any], suffix: str) -> None:
        self.paths = [folder / f"{n}{suffix}" for n in range(ROWS)]
        self.load = load

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Any:
        return torch.as_tensor(self.load(self.paths[index]))


def read_text(path: Path) -> int:
    return int(path.read_text())


def read_open(path: Path) -> int:
    with open(path) as file:
        return int(file.read())


def read_if_there(path: Path) -> int:
    try:
        return int(path.read_text())
    except FileNotFoundError:
        return -1


def write(path: Path, value: int) -> None:
    if path.suffix == ".npy":
        np.save(path, np.array(value))
    elif path.suffix == ".pt":
        torch.save(torch.tensor(value), path)
    else:
        path.write_text(f"{value:05d}")
    later = time.time_ns() + value * 1_000_000
    os.utime(path, ns=(later, later))


WORKERS = {"num_workers": 2, "multiprocessing_context": "fork"}


@pytest.mark.parametrize("options", [{"collate_fn": list}, {}, WORKERS], ids=["one by one", "a table", "workers"])
@pytest.mark.parametrize(
    ("load", "suffix"),
    [(read_text, ".txt"), (read_open, ".txt"), (np.load, ".npy"), (torch.load, ".pt"), (read_if_there, ".txt")],
)
def test_a_file_that_is_rewritten_between_epochs_is_read(load: Any, suffix: str, options: Any, tmp_path: Path) -> None:
    def rewriting() -> Any:
        folder = tmp_path / f"files {time.time_ns()}"
        folder.mkdir()
        data = OfFiles(folder, load, suffix)
        for number, path in enumerate(data.paths):
            if load is not read_if_there or number != 3:
                write(path, number)
        found = epochs(data, 2, **options)
        for number in (0, 3, ROWS - 1):  # not the one that is looked at in each epoch
            write(data.paths[number], 100 + number)
        return [*found, *epochs(data, 2, **options)]

    same(tmp_path, rewriting)


class OfOpenFile(Dataset[Any]):
    def __init__(self, path: Path, opened: Callable[[Path], Any]) -> None:
        self.file = opened(path)

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.file, np.memmap):
            return torch.tensor(int(self.file[index]))
        self.file.seek(index)
        return torch.tensor(self.file.read(1)[0])


@pytest.mark.parametrize("opened", [lambda path: np.memmap(path, np.uint8, "r"), lambda path: path.open("rb", 0)])
def test_a_file_that_stays_open_is_rewritten_in_place(opened: Any, tmp_path: Path) -> None:
    def rewriting() -> Any:
        path = tmp_path / f"rows {time.time_ns()}"
        path.write_bytes(bytes(range(ROWS)))
        os.utime(path, ns=(1, 1))
        data = OfOpenFile(path, opened)
        found = epochs(data, 2)
        with path.open("r+b") as file:
            file.write(b"\xff")
        os.utime(path, ns=(2, 2))
        return [*found, *epochs(data, 2)]

    same(tmp_path, rewriting, None)


class OfSettings(Rows):
    def __init__(self, settings: Any) -> None:
        super().__init__()
        self.settings = settings

    def __getitem__(self, index: int) -> Any:
        value = super().__getitem__(index)
        return value + self.settings.offset if index == 0 else value


class OfModule(Rows):
    def __getitem__(self, index: int) -> Any:
        value = super().__getitem__(index)
        return value + OPTIONS.offset + RARE["offset"] if index == 0 else value


class Config:
    offset = 0


class OfClass(Rows):
    def __getitem__(self, index: int) -> Any:
        value = super().__getitem__(index)
        return value + Config.offset if index == 0 else value


class Answering(dict[str, Any]):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__  # type: ignore[assignment]


def set_rare(data: Any, value: int) -> None:
    RARE["offset"] = value


SETTINGS: list[tuple[Callable[[], Any], Callable[[Any, int], None]]] = [
    (lambda: OfSettings(argparse.Namespace(offset=0)), lambda data, value: setattr(data.settings, "offset", value)),
    (lambda: OfSettings(SimpleNamespace(offset=0)), lambda data, value: setattr(data.settings, "offset", value)),
    (lambda: OfSettings(Answering(offset=0)), lambda data, value: setattr(data.settings, "offset", value)),
    (OfModule, lambda data, value: setattr(OPTIONS, "offset", value)),
    (OfModule, set_rare),
    (OfClass, lambda data, value: setattr(Config, "offset", value)),
]


@pytest.mark.parametrize("options", [{"collate_fn": list}, {}], ids=["one by one", "a table"])
@pytest.mark.parametrize(("make", "change"), SETTINGS)
def test_a_setting_that_one_sample_depends_on_is_watched(make: Any, change: Any, options: Any, tmp_path: Path) -> None:
    def changing() -> Any:
        data = make()
        change(data, 0)
        found = epochs(data, 2, **options)
        change(data, 50)
        found += epochs(data, 2, **options)
        change(data, 0)
        return found

    same(tmp_path, changing, None)


def fill(data: Any) -> None:
    data.array[4:] = -1


@pytest.mark.parametrize("options", [{}, {"batch_size": None}, {"collate_fn": list}])
@pytest.mark.parametrize("wrap", [lambda d: d, lambda d: Wrapped(d, range(ROWS)), lambda d: ConcatDataset([d])])
def test_an_edit_in_place_is_seen_behind_any_data_set_around_it(wrap: Any, options: Any, tmp_path: Path) -> None:
    def editing() -> Any:
        data = Rows()
        around = wrap(data)
        found = epochs(around, 2, **options)
        fill(data)
        return [*found, *epochs(around, 2, **options)]

    same(tmp_path, editing, None)


@pytest.mark.parametrize("options", [{"collate_fn": list}, {}, WORKERS], ids=["one by one", "a table", "workers"])
def test_what_is_not_kept_any_more_is_said_and_freed(options: Any, tmp_path: Path) -> None:
    def alive() -> list[Any]:
        return [thing for thing in gc.get_objects() if type(thing) in (FileCache, SampleTable)]

    others = alive()

    def held() -> int:
        found = [thing for thing in alive() if not any(thing is other for other in others)]
        caches = [thing for thing in found if type(thing) is FileCache]
        tables = [thing for thing in found if type(thing) is SampleTable]
        files = [path for path in (tmp_path / "cache-sample").iterdir() if "." in path.name]
        return len(files) + sum(len(c._own) for c in caches) + sum(len(table._columns) for table in tables)

    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        data = Rows()
        epochs(data, 2, **options)
        assert held() and target.changes == 1 and not target.reasons
        fill(data)
        assert epochs(data, 1, **options) == [[0, 1, 2, 3], [-1] * 4, [-1] * 4]
        weight = torch.nn.Parameter(torch.zeros(1))
        weight.grad = torch.zeros(1)
        torch.optim.SGD([weight], 0.1).step()  # the end of a step is when what workers tell is heard
        assert target.changes == 0 and target.reasons == ["samples of Rows were changed in place, or for long"]
        assert not held()


class Unseen(Rows):
    """No name in its code tells what it depends on."""

    def __getitem__(self, index: int) -> Any:
        return torch.tensor(np.add(index, 0))


@pytest.mark.parametrize("options", [{"collate_fn": list}, {}], ids=["one by one", "a table"])
def test_one_sample_in_64_is_drawn_again(options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, rows = np.add, 4 * AGAIN
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        data = Unseen(rows)
        epochs(data, 2, **options)
        changed = [n for n in range(rows) if n != rows // 2]
        monkeypatch.setattr(np, "add", lambda index, zero: real(index, 1000 if index in changed else 0))
        found = [value for batch in epochs(data, 1, **options) for value in batch]
        assert all(value == 1000 + n for n, value in enumerate(found) if n >= AGAIN + 4 and n in changed)
        assert target.changes == 0 and target.reasons == ["samples of Unseen were others when they were drawn again"]


@pytest.mark.parametrize("options", [{}, {"collate_fn": list}], ids=["a table", "one by one"])
def test_a_sample_that_varies_all_the_same_is_let_go(
    options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among the first batches, which are made both ways, or one day among the one in 64 that are drawn again."""
    real, numbers = np.add, itertools.count(100)
    monkeypatch.setattr(np, "add", lambda index, zero: real(index, next(numbers) if index == 2 else 0))
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        data = Unseen(16)
        epochs(data, 1 if not options else 4 * AGAIN, **options)
        assert target.changes == 0
        assert target.reasons == ["samples of Unseen were others when they were drawn again"]
        found = [batch[2] for batch in epochs(data, 3, **options)[::4]]
        assert len(set(found)) == 3


def spelled(text: str) -> int:
    return sum(ord(letter) for letter in text * 50)


class Spelled(Rows):
    def __getitem__(self, index: int) -> Any:
        return torch.tensor(spelled(str(index)))


def test_a_lever_that_stands_before_a_function_does_not_make_samples_vary(tmp_path: Path) -> None:
    want = epochs(Spelled())
    with LocalTarget(str(tmp_path)) as target:
        cache_calls.apply(target, {"max_bytes": 1 << 20})
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        assert epochs(Spelled()) == want
        assert hasattr(spelled, "__wrapped__") and target.changes == 1 and not target.reasons


def test_an_index_that_is_an_array_is_the_scripts_own(tmp_path: Path) -> None:
    class Slices(Rows):
        def __getitem__(self, index: Any) -> Any:
            return torch.from_numpy(np.atleast_1d(self.array[index]))

    order = [np.array([0, 1]), np.array([4, 2]), 3, np.int64(5), torch.tensor(6), np.array(7), True]
    same(tmp_path, lambda: epochs(Slices(), sampler=order, batch_size=None))


def test_levers_that_gather_batches_later_are_not_left_out(tmp_path: Path) -> None:
    """Where parts are kept of one data set, whole samples of the next have their table all the same."""
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        epochs(Varying())
        data = Rows(40)
        epochs(data, 2, collate_fn=default_collate)
        loader = DataLoader(data, 4)
        assert type(iter(loader)._dataset_fetcher.dataset) is not Rows  # type: ignore[attr-defined]
        assert target.changes == 1


class Varying(Rows):
    def row(self, index: int) -> Any:
        return torch.tensor(int(self.array[index]))

    def __getitem__(self, index: int) -> Any:
        return self.row(index) + torch.rand(1)


@pytest.mark.parametrize("options", [{}, {"collate_fn": list}], ids=["a table", "one by one"])
def test_an_epoch_of_another_data_set_is_no_reason_to_look(
    options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where both are drawn from in turns, as with a replay buffer beside the training's data."""
    looks: list[Any] = []
    real = Witness.look
    monkeypatch.setattr(Witness, "look", lambda witness: (looks.append(witness), real(witness))[1])
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        data, other = Rows(), Doubled()
        epochs(data, 2, **options)
        epochs(other, 2, **options)
        looks.clear()
        for _ in iter(DataLoader(data, 1, **options)):
            next(iter(DataLoader(other, 2, **options)))
        assert target.changes == 2
        assert [looks.count(witness) for witness in dict.fromkeys(looks)] == [1, ROWS]
