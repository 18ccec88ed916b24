"""Batches that a thread makes ahead."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import pytest

from hotlap_workloads.engine.loader import ahead, loading
from hotlap_workloads.errors import WorkloadError


def counted(made: list[int], count: int, broken: int = -1) -> Iterator[str]:
    for number in range(count):
        if number == broken:
            raise OSError("gone")
        made.append(threading.get_ident())
        yield str(number)


@pytest.mark.parametrize("count", [1, 2, 9])
def test_they_are_the_same_in_the_same_order_and_no_more_of_them_than_asked(count: int) -> None:
    made: list[int] = []
    found = []
    for batch in ahead(counted(made, 6), count):
        found.append(batch)
        assert len(made) <= len(found) + count
    assert found == [str(i) for i in range(6)] and len(made) == 6
    assert set(made) != {threading.get_ident()}, "by another thread"


def test_what_breaks_the_making_of_a_batch_is_raised_at_its_turn() -> None:
    batches = ahead(counted([], 6, broken=2), 4)
    assert [next(batches), next(batches)] == ["0", "1"]
    with pytest.raises(OSError, match="gone"):
        next(batches)


def test_an_epoch_that_is_left_early_leaves_no_thread() -> None:
    before = threading.active_count()
    for _ in ahead(counted([], 100), 2):
        break
    assert threading.active_count() == before


@pytest.mark.parametrize("how", ["is killed by signal: Killed", "exited unexpectedly"])
def test_a_loading_process_that_was_killed_is_told(how: str) -> None:
    said = f"A loading process was ended from outside (DataLoader worker (pid 7) {how}). Mostly the memory was full"
    with pytest.raises(WorkloadError, match=re.escape(said)), loading():
        raise RuntimeError(f"DataLoader worker (pid 7) {how}.")


def test_other_errors_beside_loading_are_as_they_were() -> None:
    with pytest.raises(RuntimeError, match="shapes do not fit"), loading():
        raise RuntimeError("shapes do not fit")
