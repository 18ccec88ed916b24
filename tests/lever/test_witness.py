"""A data set that the script changes after it has proven itself gives what the script's own code gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset

from hotlap.lever.catalog import cache_sample
from hotlap.lever.contents import Contents
from hotlap.lever.sample_proof import proven
from hotlap.testing.lever_target import LocalTarget

ROWS = 12
SCALE = [1.0]


class Resize:
    def __init__(self) -> None:
        self.size = 3

    def __call__(self, value: float) -> torch.Tensor:
        return torch.full((self.size,), value * SCALE[0])


class Labelled(Dataset[Any]):
    def __init__(self) -> None:
        self.train = True
        self.labels = list(range(ROWS))
        self.array = np.arange(ROWS)
        self.tensor = torch.arange(float(ROWS))
        self.notes = [{"box": [1.0, float(n)]} for n in range(ROWS)]
        self.steps = [Resize()]
        self.paths = [Path(str(n)) for n in range(ROWS)]

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Any:
        x = self.steps[0](float(self.array[index]) + self.notes[index]["box"][1])
        x = x + self.tensor[index] if self.train else x
        return x, self.labels[index]


def relabel(data: Any) -> None:
    data.labels = [7] * ROWS


def relabel_one(data: Any) -> None:
    data.labels[5] = 99


def evaluate(data: Any) -> None:
    data.train = False


def fill_array(data: Any) -> None:
    data.array[4:] = -1


def fill_tensor(data: Any) -> None:
    data.tensor.zero_()


def fill_tensor_unseen(data: Any) -> None:
    data.tensor.numpy()[3] = -5


def note(data: Any) -> None:
    data.notes[8]["box"][1] = 0.5


def resize(data: Any) -> None:
    data.steps[0].size = 2


def scale(data: Any) -> None:
    SCALE[0] = 1.0 if SCALE[0] == 2.0 else 2.0


SEEN_AT_ONCE = [relabel, relabel_one, evaluate, fill_tensor]
IN_PLACE = [fill_array, fill_tensor_unseen, note, resize, scale]
CHANGES = [*SEEN_AT_ONCE, *IN_PLACE]


def values(batches: Any) -> list[Any]:
    return [(x.tolist(), list(map(int, y))) for x, y in batches]


def trained(change: Callable[[Any], None], wrap: Any, **options: Any) -> list[Any]:
    """Two epochs, the change, two more, and samples drawn by hand."""
    SCALE[0] = 1.0
    base = Labelled()
    data = wrap(base)
    loader: DataLoader[Any] = DataLoader(data, 4, **options)
    found = [values(loader), values(loader)]
    change(base)
    found.append(values([[data[i][0], [data[i][1]]] for i in (0, 5, 8)]))
    return [*found, values(loader), values(loader)]


@pytest.mark.parametrize(
    "wrap",
    [lambda d: d, lambda d: ConcatDataset([d]), lambda d: Subset(d, range(ROWS))],
    ids=["own", "parts", "subset"],
)
@pytest.mark.parametrize("change", CHANGES)
def test_what_the_script_changes_is_seen(change: Any, wrap: Any, tmp_path: Path) -> None:
    expected = trained(change, wrap)
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 20})
        assert trained(change, wrap) == expected
        assert target.changes == int(change in SEEN_AT_ONCE)
        assert [("changed in place" in why) for why in target.reasons] == [True] * (change in IN_PLACE)


@pytest.mark.parametrize("change", [relabel, fill_array])
def test_workers_forked_after_the_change_see_it(change: Any, tmp_path: Path) -> None:
    expected = trained(change, lambda d: d)
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 20})
        assert trained(change, lambda d: d, num_workers=1, multiprocessing_context="fork") == expected


def test_what_is_replaced_is_seen_at_once_and_trusted_when_it_is_put_back() -> None:
    data = Labelled()
    witness = proven(data, data.__getitem__)
    assert witness is not None and witness.stands()
    data.train = False
    assert not witness.stands()
    witness.look()
    data.train = True
    assert witness.stands()
    data.tensor += 1
    assert not witness.stands()
    data.tensor -= 1
    data.labels = list(data.labels)  # others, but equal
    witness.look()
    assert not witness.stands(), "the tensor tells that it was changed"


def test_equal_values_are_the_same_and_what_was_changed_in_place_is_gone_for_good() -> None:
    data = Labelled()
    witness = proven(data, data.__getitem__)
    assert witness is not None
    data.labels = list(data.labels)
    assert not witness.stands()
    witness.look()
    assert witness.stands()
    data.array[3] += 1
    witness.look()
    data.array[3] -= 1
    witness.look()
    assert not witness.stands(), "samples may have been kept while it was another"


def test_what_is_replaced_for_long_is_gone_too() -> None:
    data, said = Labelled(), list[int]()
    witness = proven(data, data.__getitem__, lambda: said.append(1))
    assert witness is not None
    data.train = False
    for number in range(10):
        witness.look()
        assert bool(said) == (number >= 7)
    data.train = True
    assert not witness.stands() and said == [1]


def test_contents_of_many_kinds() -> None:
    def scaled(value: float, by: float = 2.0) -> float:
        return value * by * factor

    factor = 3.0
    lambdas: Any = {"f": scaled, "labels": [np.int64(3)] * 4, "objects": np.array([Resize(), None]), "set": {1, 2}}
    first = Contents(lambdas)
    assert Contents(lambdas).same_as(first)
    lambdas["objects"][0].size = 9
    assert not Contents(lambdas).same_as(first)
    first = Contents(lambdas)
    factor = 4.0
    assert not Contents(lambdas).same_as(first)
    masked = np.ma.masked_array([1, 2], mask=[False, False])
    for held in (masked, [masked]):
        first = Contents(held)
        assert Contents(held).same_as(first)
        masked[0] = np.ma.masked if masked.mask[0] == 0 else 1
        assert not Contents(held).same_as(first)


class Relabelled(Labelled):
    pass


def test_others_of_the_class_and_of_one_that_inherits_prove_themselves_too(tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 20})
        for number, data in enumerate((Labelled(), Labelled(), Relabelled())):
            loader: DataLoader[Any] = DataLoader(data, 4, collate_fn=list)
            first = [[x.tolist() for x, _ in batch] for batch in loader]
            assert first == [[x.tolist() for x, _ in batch] for batch in loader]
            assert target.changes == number + 1
    assert not target.problems
