"""The background thread: order, errors in their place, an end in every case."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from hotlap.lever.catalog import background_fetch
from hotlap.lever.fetch_ahead import FetchAhead
from hotlap.patch.helpers.fetch_ahead import fetch_ahead
from hotlap.testing.lever_target import LocalTarget


@pytest.fixture(autouse=True)
def _data_sets_may_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests read of their data sets who drew: a script that does so is left alone."""
    monkeypatch.setattr("hotlap.lever.positions.read_of_draws", lambda drawing: None)


def threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "hotlap-fetch-ahead"]


def wait_for_end() -> None:
    until = time.monotonic() + 3
    while threads() and time.monotonic() < until:
        time.sleep(0.01)
    assert threads() == []


def test_order_and_end() -> None:
    reader = FetchAhead(iter(range(50)), 3).outer()
    assert list(reader) == list(range(50))
    with pytest.raises(StopIteration):
        next(reader)
    wait_for_end()


def test_an_error_comes_where_the_batch_would_have() -> None:
    def batches() -> Iterator[int]:
        yield 1
        yield 2
        raise KeyError("broken sample")

    seen = []
    with pytest.raises(KeyError, match="broken sample"):
        for value in FetchAhead(batches(), 8).outer():
            seen.append(value)
    assert seen == [1, 2]
    wait_for_end()


def test_a_script_that_goes_on_after_an_error_gets_the_batches_behind_it() -> None:
    class Files:
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> int:
            if index == 2:
                raise OSError("torn file")
            return index

    def read(iterator: Any) -> list[Any]:
        found: list[Any] = []
        while True:
            try:
                found.append(next(iterator).item())
            except OSError as err:
                found.append(str(err))
            except StopIteration:
                return found

    loader: Any = DataLoader(Files())  # type: ignore[arg-type]
    assert read(FetchAhead(iter(loader), 2).outer()) == read(iter(loader)) == [0, 1, "torn file", 3, 4, 5]
    wait_for_end()


@pytest.mark.parametrize("helper", [True, False])
def test_the_thread_works_on_the_device_of_the_loop(helper: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    current = threading.local()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: getattr(current, "device", 0))
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: setattr(current, "device", device))
    current.device = 1
    batches: Any = (torch.cuda.current_device() for _ in range(3))
    assert list(fetch_ahead(batches, 2) if helper else FetchAhead(batches, 2).outer()) == [1, 1, 1]


def test_it_is_ahead_but_not_far() -> None:
    drawn = []

    def batches() -> Iterator[int]:
        for i in range(100):
            drawn.append(i)
            yield i

    reader = FetchAhead(batches(), 2).outer()
    assert drawn == []
    next(reader)
    time.sleep(0.2)
    assert 3 <= len(drawn) <= 4


def test_the_first_batch_is_drawn_where_it_is_asked_for() -> None:
    """What proves itself by its first calls does so only where nothing else draws at the same time."""
    drawn = (threading.current_thread().name for _ in range(3))
    here = threading.current_thread().name
    assert list(FetchAhead(drawn, 2).outer()) == [here, "hotlap-fetch-ahead", "hotlap-fetch-ahead"]
    wait_for_end()


@pytest.mark.parametrize("length", [3, 9])
@pytest.mark.parametrize("read", [0, 1])
def test_a_reader_behind_the_end_gets_every_batch(length: int, read: int) -> None:
    """A function that the script gave to atexit may go on with an iterator."""
    ahead = FetchAhead(iter(range(length)), 2)
    reader = ahead.outer()
    found = [next(reader) for _ in range(read)]
    ahead.stop()
    behind = threading.Thread(target=lambda: found.extend(reader), daemon=True)
    behind.start()
    behind.join(3)
    assert found == list(range(length))


def test_leaving_the_loop_ends_the_thread() -> None:
    for _ in FetchAhead(iter(range(10_000)), 2).outer():
        break
    gc.collect()
    wait_for_end()


def test_the_process_ends_in_the_middle_of_an_epoch() -> None:
    code = (
        "import itertools, torch\nfrom hotlap.lever.fetch_ahead import FetchAhead\n"
        "r = FetchAhead((torch.ones(10**6) for _ in itertools.count()), 200).outer()\nnext(r)\nprint('done')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_loop_may_draw_from_several_loaders(tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        background_fetch.apply(target, {"depth": 2})
        one, two = DataLoader(list(range(20)), batch_size=2), DataLoader(list(range(20)), batch_size=2)
        pairs = [(a.tolist(), b.tolist(), c.tolist()) for a, b, c in zip(one, two, one, strict=True)]
    assert pairs == [([i, i + 1],) * 3 for i in range(0, 20, 2)] and target.changes == 3
    wait_for_end()


class Reusing(IterableDataset[Any]):
    """Writes each batch over one of ``buffers``, as a reader of large records may."""

    def __init__(self, buffers: int, wrap: Any = lambda array: array) -> None:
        self._buffers = [numpy.zeros(4) for _ in range(buffers)]
        self._wrap = wrap
        self.by: list[str] = []

    def __iter__(self) -> Iterator[Any]:
        for number in range(12):
            buffer = self._buffers[number % len(self._buffers)]
            buffer[:] = number
            self.by.append(threading.current_thread().name)
            yield self._wrap(buffer)


def first_of(batch: Any) -> float:
    while isinstance(batch, dict | tuple | list) or hasattr(batch, "x"):
        batch = batch["x"] if isinstance(batch, dict) else batch.x if hasattr(batch, "x") else batch[0]
    return float(batch[0])


@pytest.mark.parametrize("buffers", [1, 2, 3])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda array: array,
        lambda array: {"x": [array[1:]]},
        lambda array: (torch.from_numpy(array), 3),
        lambda array: SimpleNamespace(x=torch.from_numpy(array)[2:]),
    ],
    ids=["array", "nested", "tensor", "object"],
)
def test_a_batch_is_not_overwritten_while_it_is_used(tmp_path: Path, buffers: int, wrap: Any) -> None:
    data = Reusing(buffers, wrap)
    loader: Any = DataLoader(data, batch_size=None, collate_fn=lambda batch: batch)
    with LocalTarget(str(tmp_path)) as target:
        background_fetch.apply(target, {"depth": 2})
        for _ in range(2):
            seen = []
            for batch in loader:
                time.sleep(0.002)
                seen.append(first_of(batch))
            assert seen == list(range(12))
    assert target.changes == 0 and "memory" in target.reasons[0] and len(target.reasons) == 1
    assert set(data.by) == {threading.current_thread().name}


def test_batches_that_are_known_to_be_apart_are_fetched_ahead_at_once(tmp_path: Path) -> None:
    data = Reusing(8, lambda array: torch.from_numpy(array.copy()))
    loader: Any = DataLoader(data, batch_size=None)
    here = threading.current_thread().name
    with LocalTarget(str(tmp_path)) as target:
        background_fetch.apply(target, {"depth": 2})
        assert len(list(loader)) == 12
        assert data.by.count(here) == 4, "as many as could be under way at once"
        data.by.clear()
        list(loader)
        assert data.by.count(here) == 1, "it is known now"
        collated = Reusing(1, lambda array: array.copy())
        list(DataLoader(collated, batch_size=2))
        assert collated.by.count(here) == 2, "torch's own function puts samples together in new memory"
        assert target.changes == 3 and target.reasons == []
    wait_for_end()


def test_a_list_that_is_filled_anew_is_not_filled_while_it_is_used(tmp_path: Path) -> None:
    def batches() -> Iterator[Any]:
        batch: list[Any] = [None]
        for number in range(8):
            batch[0] = torch.full((2,), number)
            yield batch

    told: list[bool] = []
    seen = []
    for batch in FetchAhead(batches(), 2, told=told.append).outer():
        time.sleep(0.002)
        seen.append(int(batch[0][0]))
    assert seen == list(range(8)) and told == [False]
