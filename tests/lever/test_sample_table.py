"""Tables of samples: the batches that torch would stack, and samples drawn one by one wherever they differ in form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, default_collate

from hotlap.lever.catalog import cache_sample
from hotlap.lever.gathered import CHECKED
from hotlap.lever.nested_rows import taken_apart
from hotlap.lever.sample_table import SampleTable
from hotlap.testing.lever_target import LocalTarget

ROWS, BATCH = 24, 4
SETTING = {"max_bytes": 1 << 20}


class Samples(Dataset[Any]):
    """Computed from the index, by a function of the module below."""

    def __init__(self, form: str) -> None:
        self.form = form

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Any:
        return sample(self.form, index)


def sample(form: str, index: int) -> Any:
    row = torch.mul(torch.arange(6.0).view(2, 3), index)
    return {
        "tensor": row,
        "pair": (row, index),
        "numbers": [index / 7, index, bool(index % 2), np.full((2, 2), index, np.int16)],
        "dict": {"image": row, "box": (row[0].clone(), float(index))},
        "text": (row, str(index)),
        "ragged": (row, torch.ones(2 if index < 9 else 3))[: 1 if index < 9 else 2],
        "numbers of two kinds": (row, index if index % 2 else float(index)),
    }[form]


def same(a: Any, b: Any) -> bool:
    left: list[torch.Tensor] = []
    right: list[torch.Tensor] = []
    if taken_apart(a, left) != taken_apart(b, right):
        return False
    return all(x.dtype == y.dtype and x.stride() == y.stride() and torch.equal(x, y)
               for x, y in zip(left, right, strict=True))  # fmt: skip


def table_of(form: str, reserve: Callable[[int], bool] = lambda size: True) -> SampleTable:
    return SampleTable(lambda index: sample(form, index), ROWS, default_collate, reserve)


@pytest.mark.parametrize("form", ["tensor", "pair", "numbers", "dict"])
def test_a_batch_is_the_samples_stacked_and_each_is_drawn_once(form: str) -> None:
    drawn: list[int] = []
    table = SampleTable(lambda i: (drawn.append(i), sample(form, i))[1], ROWS, default_collate, lambda size: True)
    for indices in ([3, 1, 3, 20], [20, 0, 5, 1], list(range(ROWS)), [7]):
        assert same(table.batch(indices), default_collate([sample(form, i) for i in indices]))
    assert sorted(drawn) == list(range(ROWS))


def test_a_batch_belongs_to_who_asked_for_it() -> None:
    table = table_of("tensor")
    table.batch([1, 2]).fill_(-1.0)
    assert same(table.batch([1, 2]), default_collate([sample("tensor", 1), sample("tensor", 2)]))


@pytest.mark.parametrize("form", ["text", "ragged", "numbers of two kinds"])
def test_samples_of_several_forms_are_left(form: str) -> None:
    table = table_of(form)
    table.batch([0])
    assert table.batch([0, 1, 9]) is None and table.batch([0]) is None


def test_no_room_no_table() -> None:
    asked: list[int] = []
    table = table_of("pair", lambda size: bool(asked.append(size)))
    assert table.batch([1]) is None and asked == [ROWS * (6 * 4 + 8)]


def test_an_index_beyond_the_length_it_had() -> None:
    assert table_of("tensor").batch([ROWS]) is None


def test_the_draws_own_error_is_heard_and_the_next_batch_is_whole() -> None:
    fail = [True]

    def draw(index: int) -> Any:
        if fail[0] and index == 2:
            raise ValueError("no such clip")
        return sample("pair", index)

    table = SampleTable(draw, ROWS, default_collate, lambda size: True)
    with pytest.raises(ValueError, match="no such clip"):
        table.batch([1, 2])
    fail[0] = False
    assert same(table.batch([1, 2]), default_collate([sample("pair", 1), sample("pair", 2)]))


def epochs(data: Dataset[Any], count: int = 3, **options: Any) -> list[Any]:
    torch.manual_seed(1)
    loader = DataLoader(data, BATCH, shuffle=True, **options)
    return [batch for _ in range(count) for batch in loader]


@pytest.mark.parametrize("form", ["tensor", "pair", "numbers", "dict", "text", "ragged"])
@pytest.mark.parametrize("part", [False, True])
def test_the_lever_gives_the_same_batches(form: str, part: bool, tmp_path: Path) -> None:
    def data() -> Dataset[Any]:
        return Subset(Samples(form), [5, 3, *range(8)]) if part else Samples(form)

    options = {"collate_fn": list} if form == "ragged" else {}
    expected = epochs(data(), **options)
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, SETTING)
        found = epochs(data(), **options)
    assert target.changes == 1 and not target.problems
    assert len(found) == len(expected) and all(same(a, b) for a, b in zip(found, expected, strict=True))


def test_the_lever_draws_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, real = list[int](), torch.mul
    monkeypatch.setattr(torch, "mul", lambda row, index: (drawn.append(index), real(row, index))[1])
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, SETTING)
        data = Samples("pair")
        epochs(data, 1)
        proof = 8 + 2 + 2 * CHECKED * BATCH  # drawn twice to be proven; the first batches are made both ways
        assert len(drawn) <= ROWS + proof
        drawn.clear()
        epochs(data, 2)
        assert drawn == [ROWS // 2] * 2, "one sample an epoch, to see whether it is the same still"
