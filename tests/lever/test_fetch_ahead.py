"""The background thread: order, errors in their place, an end in every case."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from hotlap.lever.catalog import background_fetch
from hotlap.lever.fetch_ahead import FetchAhead
from hotlap.patch.helpers.fetch_ahead import fetch_ahead
from hotlap.testing.lever_target import LocalTarget


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
