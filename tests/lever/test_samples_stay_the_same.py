"""Data sets whose samples would be others if parts were kept, or shared by workers, a little too freely."""

from __future__ import annotations

import functools
import random
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from lever_support import ROWS, Turning
from torch.utils.data import DataLoader, Dataset, get_worker_info

from hotlap.lever.catalog import cache_sample
from hotlap.testing.lever_target import LocalTarget

HERE: dict[str, Path] = {}
SAID: list[str] = []
WORKERS: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": "fork"}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QUICK_S", "WORTH"):
        monkeypatch.setattr(f"hotlap.lever.part_memory.{name}", 0.0)
    monkeypatch.setattr("hotlap.lever.part_memory.LONGEST_LOOK_S", 10.0)
    HERE.clear()
    SAID.clear()
    for name, change in (("one", 0), ("two", 100)):  # the same where parts are proved
        rows = np.stack([np.full(3, n + change * (n > ROWS // 2), np.float32) for n in range(ROWS)])
        HERE[name] = tmp_path / f"{name}.h5"
        with h5py.File(HERE[name], "w") as file:
            file["rows"] = file["labels"] = rows
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as file:
            for number, row in enumerate(rows):
                file.writestr(str(number), row.tobytes())


def zip_of(name: str) -> Path:
    return HERE[name].with_suffix(".zip")


class Noisy(Dataset[Any]):
    def __init__(self) -> None:
        self.path, self.file = HERE["one"], None
        self.offset: Any = None

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Any:
        return self.load(index) + random.random()

    def load(self, index: int) -> Any:
        if self.file is None:
            self.open()
        assert self.file is not None
        return self.file["rows"][index]

    def open(self) -> None:
        self.file = self.made()

    def made(self) -> Any:
        return h5py.File(self.path, "r")


def turned(data: Any, **options: Any) -> list[Any]:
    """Two epochs of workers that stay."""
    loader: DataLoader[Any] = DataLoader(
        data, batch_sampler=Turning(), collate_fn=list, persistent_workers=True, **WORKERS, **options
    )
    return [np.asarray(b).tolist() for _ in range(2) for b in loader]


def drawn(data: Any, epochs: int = 2, **options: Any) -> list[Any]:
    loader: DataLoader[Any] = DataLoader(data, 4, collate_fn=list, **options)
    return [np.asarray(b).tolist() for _ in range(epochs) for b in loader]


class OfWorker(Noisy):
    def load(self, index: int) -> Any:
        if self.offset is None:
            self.offset = get_worker_info().id  # type: ignore[union-attr]
        return np.float32([index, self.offset])


class OfOrder(Noisy):
    def load(self, index: int) -> Any:
        if self.offset is None:
            self.offset = np.random.default_rng(torch.initial_seed()).permutation(ROWS)
        return np.float32([index, self.offset[index]])


class OfOrderOnce(Noisy):
    @functools.cached_property
    def order(self) -> Any:
        return np.random.default_rng(torch.initial_seed()).permutation(ROWS)

    def load(self, index: int) -> Any:
        return np.float32([index, self.order[index]])


class OfZip(Noisy):
    def load(self, index: int) -> Any:
        return np.frombuffer(self.file.read(str(index)), np.float32).copy()  # type: ignore[attr-defined]


class OfFunction(Noisy):
    def load(self, index: int) -> Any:
        return np.float32([index]) * self.offset(1)


def give_a_zip(worker: int) -> None:
    get_worker_info().dataset.file = zipfile.ZipFile(zip_of(["one", "two"][worker]))  # type: ignore[union-attr]


def give_a_function(worker: int) -> None:
    get_worker_info().dataset.offset = lambda x, worker=worker: x * (worker + 1)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: turned(OfWorker()),
        lambda: turned(OfOrder()),
        lambda: turned(OfOrderOnce()),
        lambda: turned(OfZip(), worker_init_fn=give_a_zip),
        lambda: turned(OfFunction(), worker_init_fn=give_a_function),
    ],
    ids=["worker's number", "its own order", "its own order, by a property", "another zip", "another function"],
)  # fmt: skip
def test_workers_that_differ_share_nothing(draw: Callable[[], Any], tmp_path: Path) -> None:
    same(draw, tmp_path)


class ByProperty(Noisy):
    @functools.cached_property
    def rows(self) -> Any:
        return h5py.File(self.path, "r")["rows"]

    def load(self, index: int) -> Any:
        return self.rows[index]


class ByGlobal(Noisy):
    def made(self) -> Any:
        return h5py.File(HERE["now"], "r")


class OfArray(Noisy):
    def load(self, index: int) -> Any:
        if self.file is None:
            self.file = np.load(HERE["one"].with_suffix(".npy"))
        return np.sqrt(self.file[index])


@pytest.mark.parametrize("kind", [Noisy, ByProperty, ByGlobal, OfArray])
def test_workers_that_start_later_open_what_is_there_then(kind: Any, tmp_path: Path) -> None:
    def changing() -> list[Any]:
        HERE["now"] = HERE["one"]
        values = np.ones((ROWS, 3), np.float32)
        np.save(HERE["one"].with_suffix(".npy"), values)
        data = kind()
        first = drawn(data, 1, **WORKERS)
        data.path = HERE["now"] = HERE["two"]
        values[ROWS // 2 :] = 4
        np.save(HERE["one"].with_suffix(".npy"), values)
        return [*first, *drawn(data, 1, **WORKERS)]

    same(changing, tmp_path)


class ClosesNowAndThen(Noisy):
    """The handle stays the same object."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = 0

    def load(self, index: int) -> Any:
        if not self.file:
            self.file = h5py.File(self.path, "r")
        return self.file["rows"][index]

    def __getitem__(self, index: int) -> Any:
        both = self.load(index) + self.file["labels"][index] + random.random()  # type: ignore[index]
        self.drawn += 1
        if self.drawn % 30 == 0:
            self.file.close()  # type: ignore[attr-defined]
        return both


class ClosedFirst(ClosesNowAndThen):
    def __init__(self) -> None:
        super().__init__()
        self.file = h5py.File(self.path, "r")
        self.file.close()


class ReadsOn(Noisy):
    """A member of a zip has a place: the label follows the row."""

    def load(self, index: int) -> Any:
        if self.file is None:
            with zipfile.ZipFile(HERE["one"].with_suffix(".all"), "w") as file:
                file.writestr("all", np.arange(4 * ROWS, dtype=np.float32).tobytes())
            self.file = zipfile.ZipFile(HERE["one"].with_suffix(".all")).open("all")  # noqa: SIM115
        self.file.seek(16 * index)
        return np.frombuffer(self.file.read(12), np.float32).copy()

    def __getitem__(self, index: int) -> Any:
        row = self.load(index)
        return row + np.frombuffer(self.file.read(4), np.float32) + random.random()  # type: ignore[attr-defined]


class SaysWhereInPlace(Noisy):
    def __init__(self) -> None:
        super().__init__()
        self.current = {"shard": 0}

    def load(self, index: int) -> Any:
        return np.float32([self.current["shard"] * 100 + index] * 3)

    def __getitem__(self, index: int) -> Any:
        self.current["shard"] = index // 8
        return self.load(index % 8) + random.random()


@pytest.mark.parametrize("kind", [ClosesNowAndThen, ClosedFirst, ReadsOn, SaysWhereInPlace])
def test_what_moves_or_ends_between_two_draws_is_seen(kind: Any, tmp_path: Path) -> None:
    same(lambda: drawn(kind(), 3), tmp_path)


class Timed:
    def __enter__(self) -> None:
        self.begun = time.perf_counter()

    def __exit__(self, *_: Any) -> None:
        SAID.append("took a while")


class Store:
    def __contains__(self, key: Any) -> bool:
        SAID.append("missed")
        return False


class SaysInWith(Noisy):
    def load(self, index: int) -> Any:
        with Timed():
            return np.sqrt(np.float32([index] * 3))


class SaysInOperator(Noisy):
    def __init__(self) -> None:
        super().__init__()
        self.store = Store()

    def load(self, index: int) -> Any:
        return None if index in self.store else np.sqrt(np.float32([index] * 3))


@pytest.mark.parametrize("kind", [SaysInWith, SaysInOperator])
def test_what_a_part_says_without_a_name_is_said_each_time(kind: Any, tmp_path: Path) -> None:
    def said() -> int:
        SAID.clear()
        drawn(kind(), 3)
        return len(SAID)

    same(said, tmp_path)


class Reader:
    """Its place is shared by all processes that are forked with it open."""

    def __init__(self) -> None:
        self.file: Any = None

    def read(self, index: int) -> Any:
        if self.file is None:
            self.file = HERE["one"].open("rb")
        self.file.seek(index)
        return np.frombuffer(self.file.read(3), np.uint8)


class OfReader(Noisy):
    def __init__(self) -> None:
        super().__init__()
        self.reader = Reader()

    def __getitem__(self, index: int) -> Any:
        return self.reader.read(index)


class OfFiles(Noisy):
    def __init__(self) -> None:
        super().__init__()
        self.files: dict[Any, Any] = {}

    def __getitem__(self, index: int) -> Any:
        if self.path not in self.files:
            self.files[self.path] = h5py.File(self.path, "r")
        return self.files[self.path]["rows"][index]


@functools.lru_cache
def opened(path: Path) -> Any:
    SAID.append("opened")
    return h5py.File(path, "r")


class OfFunctionThatKeeps(Noisy):
    def __getitem__(self, index: int) -> Any:
        return opened(self.path)["rows"][index]


class OfLength(Noisy):
    def __len__(self) -> int:
        if self.file is None:
            self.open()
        return len(self.file["rows"])  # type: ignore[index]


class Endless(Noisy):
    def __len__(self) -> int:
        raise NotImplementedError


@pytest.mark.parametrize("kind", [OfReader, OfFiles, OfFunctionThatKeeps, OfLength, Endless])
def test_nothing_is_opened_where_workers_are_forked(kind: Any, tmp_path: Path) -> None:
    opened.cache_clear()

    def draw() -> Any:
        data = kind()
        found = turned(data)
        reader = getattr(data, "reader", data)
        return found, reader.file is None, len(getattr(data, "files", {})), len(SAID)

    same(draw, tmp_path)


def test_a_look_at_the_start_of_an_epoch_opens_nothing(tmp_path: Path) -> None:
    def looked() -> Any:
        data = ClosesNowAndThen()
        found = drawn(data, 1)
        data.file.close()  # type: ignore[attr-defined]
        drawn(list(range(8)))
        return found, bool(data.file)

    same(looked, tmp_path)


def same(draw: Callable[[], Any], tmp_path: Path) -> None:
    """``draw`` gives the same with the lever and without."""
    found = []
    for with_lever in (False, True):
        random.seed(7), np.random.seed(7), torch.manual_seed(7)
        if not with_lever:
            found.append(draw())
            continue
        with LocalTarget(str(tmp_path)) as target:
            cache_sample.apply(target, {"max_bytes": 1 << 24})
            found.append(draw())
        assert not target.problems
    assert repr(found[0]) == repr(found[1])
