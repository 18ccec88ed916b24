"""A pass over a loader within another one, where the loader was given workers that stay."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from lever_support import UNWATCHED
from torch.utils.data import DataLoader, Dataset

from hotlap.lever.loader_change import load_in_workers
from hotlap.lever.mid_pass import MidPass
from hotlap.testing.lever_target import LocalTarget

SETTING = {"workers": 1, "prefetch": 2, "torch_threads": None}


class Numbers(Dataset[Any]):
    """Each with the process that loaded it."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> tuple[int, int]:
        return index, os.getpid()


@pytest.fixture
def loader(tmp_path: Path) -> Any:
    made = DataLoader(Numbers(), batch_size=2)
    with LocalTarget(str(tmp_path)) as target:
        load_in_workers(target, made, SETTING, MidPass(target))
        assert made.num_workers == 1 and made.persistent_workers
        yield made
    assert made.num_workers == 0 and not made.persistent_workers and "_get_iterator" not in vars(made)


def rows(batches: Any) -> list[list[int]]:
    return [batch[0].tolist() for batch in batches]


ALL = [[0, 1], [2, 3], [4, 5]]


def test_epochs_are_loaded_by_the_same_workers(loader: Any) -> None:
    seen = {int(batch[1][0]) for _ in range(3) for batch in loader}
    for _ in range(3):
        for batch in loader:  # left early, and nobody holds it any more
            seen.add(int(batch[1][0]))
            break
    assert len(seen) == 1 and seen != {os.getpid()}


def test_an_evaluation_within_an_epoch_ends_it_not(loader: Any) -> None:
    found = []
    for number, batch in enumerate(loader):
        found.append(batch[0].tolist())
        if number in (0, 2):
            assert rows(loader) == ALL
    assert found == ALL and rows(loader) == ALL


def test_a_look_at_one_batch_begins_no_epoch_anew(loader: Any) -> None:
    found = []
    for batch in loader:
        assert next(iter(loader))[0].tolist() == [0, 1]
        found.append(batch[0].tolist())
        assert len(found) <= len(ALL)
    assert found == ALL


def test_two_passes_side_by_side(loader: Any) -> None:
    assert [(a[0].tolist(), b[0].tolist()) for a, b in zip(loader, loader, strict=True)] == [(a, a) for a in ALL]
    assert [(a, b) for a in rows(loader) for b in rows(loader)] == [(a, b) for a in ALL for b in ALL]


def test_an_iterator_that_is_kept_begins_again_where_it_was_over(loader: Any) -> None:
    iterator, seen, found = iter(loader), set(), []
    for _ in range(7):
        try:
            batch = next(iterator)
        except StopIteration:
            iterator = iter(loader)  # the old one is still held
            batch = next(iterator)
        seen.add(int(batch[1][0]))
        found.append(batch[0].tolist())
    assert found == [*ALL, *ALL, ALL[0]] and len(seen) == 1


def test_workers_end_with_their_loader(tmp_path: Path) -> None:
    made: Any = DataLoader(Numbers(), batch_size=2)
    target = LocalTarget(str(tmp_path))
    load_in_workers(target, made, SETTING, UNWATCHED)
    (worker,) = {int(batch[1][0]) for batch in made}
    os.kill(worker, 0)
    target._undo.clear()
    del made
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_such_a_loader_can_be_sent_elsewhere(loader: Any) -> None:
    torch.manual_seed(0)
    sent = pickle.dumps(loader)
    for again in (pickle.loads(sent), copy.deepcopy(loader)):
        assert rows(again) == ALL == rows(again)
        (worker,) = {int(batch[1][0]) for batch in again}
    del again
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    assert b"hotlap" not in sent.replace(Numbers.__module__.encode(), b"")


class OfEpoch(Dataset[Any]):
    def __init__(self) -> None:
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[int, int]:
        return self.epoch, os.getpid()


def test_a_data_set_that_the_script_changes_between_passes_gets_new_workers(tmp_path: Path) -> None:
    data = OfEpoch()
    made: Any = DataLoader(data, batch_size=2)
    found, ended = [], []
    with LocalTarget(str(tmp_path)) as target:
        load_in_workers(target, made, SETTING, MidPass(target))
        assert made.persistent_workers
        for epoch in (0, 0, 1, 2, 2):
            data.set_epoch(epoch)
            for batch in made:
                assert batch[0].tolist() == [epoch] * 2
                found.append(int(batch[1][0]))
        held = iter(made)  # somebody is in the middle of a pass when it changes
        data.set_epoch(3)
        assert next(iter(made))[0].tolist() == [3, 3] and next(held)[0].tolist() == [3, 3], "as without workers"
        del held, made
    for worker in dict.fromkeys(found):
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
        ended.append(worker)
    assert len(ended) == 3 and [found.count(worker) for worker in ended] == [4, 2, 4]


def tens(samples: Any) -> Any:
    return [torch.tensor([10 * sample[0] for sample in samples])]


def test_a_collate_function_that_the_script_gives_later_is_used(loader: Any) -> None:
    before = rows(loader)
    loader.collate_fn = tens
    assert before == ALL and rows(loader) == [[10 * n for n in batch] for batch in ALL] == rows(loader)
    seen = LEVEL[0]
    loader.collate_fn = of_level
    assert rows(loader) == [[seen]] * 3
    LEVEL[0] += 1
    try:
        assert rows(loader) == [[seen + 1]] * 3, "what it reads is looked at too"
    finally:
        LEVEL[0] = seen


LEVEL = [0]


def of_level(samples: Any) -> Any:
    return [torch.tensor([LEVEL[0]])]
