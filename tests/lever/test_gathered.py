"""Gathered batches: the same as stacked samples where they may be, and stacked samples everywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, default_collate, random_split

from hotlap.lever.catalog import batched_fetch
from hotlap.lever.contract import Refusal
from hotlap.lever.gathered import CHECKED, GatheredDataset, Trust
from hotlap.lever.tensor_rows import can_gather, gather_from
from hotlap.testing.lever_kit import findings_of, machine_of
from hotlap.testing.lever_target import LocalTarget


def tensors(rows: int = 40) -> TensorDataset:
    torch.manual_seed(0)
    return TensorDataset(torch.randn(rows, 3, 2), torch.arange(rows), torch.rand(rows) > 0.5)


def epochs(loader: DataLoader[Any], count: int = 2) -> list[Any]:
    torch.manual_seed(1)
    return [batch for _ in range(count) for batch in loader]


def steps(loader: DataLoader[Any]) -> None:
    """Steps of a training, at whose end changes in workers are counted."""
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(2):
        for _ in loader:
            weight.grad = torch.ones(1)
            optimizer.step()


def both_ways(folder: Path, make: Callable[[], DataLoader[Any]]) -> int:
    """Changes counted; the batches are compared with those of the same loader before."""
    expected = epochs(make())
    with LocalTarget(str(folder)) as target:
        batched_fetch.apply(target, {})
        found = epochs(make())
        steps(make())
    assert not target.problems and len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert type(a) is type(b) and len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            assert left.dtype == right.dtype and left.stride() == right.stride() and torch.equal(left, right)
    return target.changes


def loaders() -> Iterator[tuple[str, Callable[[], DataLoader[Any]]]]:
    yield "shuffled", lambda: DataLoader(tensors(), batch_size=6, shuffle=True)
    yield "last dropped", lambda: DataLoader(tensors(), batch_size=6, drop_last=True)
    yield "a part", lambda: DataLoader(random_split(tensors(), [30, 10])[0], batch_size=6, shuffle=True)
    part = [3, 0, 3, *range(20)]
    yield "a part of a part", lambda: DataLoader(Subset(Subset(tensors(), range(4, 40)), part), batch_size=4)
    yield "workers", lambda: DataLoader(tensors(), batch_size=6, shuffle=True, num_workers=1)
    yield "persistent", lambda: DataLoader(tensors(), batch_size=6, num_workers=1, persistent_workers=True)


@pytest.mark.parametrize(("name", "make"), [pytest.param(*pair, id=pair[0]) for pair in loaders()])
def test_the_same_batches(name: str, make: Callable[[], DataLoader[Any]], tmp_path: Path) -> None:
    assert both_ways(tmp_path, make) == 1


class Scaled(TensorDataset):
    def __getitem__(self, index: Any) -> Any:
        return tuple(2 * t for t in super().__getitem__(index))


class Own(Dataset[Any]):
    def __getitem__(self, index: int) -> Any:
        return (torch.tensor(index),)

    def __len__(self) -> int:
        return 12


@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(Scaled(torch.arange(12)), batch_size=2),
        lambda: DataLoader(Own(), batch_size=2),
        lambda: DataLoader(Subset(Own(), range(8)), batch_size=2),
        lambda: DataLoader(tensors(), batch_size=None),
        lambda: DataLoader(tensors(), batch_size=2, collate_fn=lambda samples: default_collate(samples)),
        lambda: DataLoader(TensorDataset(torch.arange(144.0).view(12, 4, 3).transpose(1, 2)), batch_size=2),
        lambda: DataLoader(Subset(TensorDataset(torch.arange(12)), [-1, -2, -3, -4]), batch_size=2),
    ],
)
def test_what_is_not_of_the_plainest_kind_is_left(make: Callable[[], DataLoader[Any]], tmp_path: Path) -> None:
    assert both_ways(tmp_path, make) == 0


def test_a_replaced_method_or_rule_is_somebodys_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_gather(tensors(), default_collate)
    with monkeypatch.context() as patch:
        patch.setattr(TensorDataset, "__getitem__", lambda self, index: (torch.tensor(index),))
        assert not can_gather(tensors(), default_collate)
    rules = torch.utils.data._utils.collate.default_collate_fn_map
    monkeypatch.setitem(rules, torch.Tensor, lambda batch, **k: batch)
    assert not can_gather(tensors(), default_collate)


def test_a_difference_in_the_first_batches_ends_it() -> None:
    used: list[int] = []
    data, gather = tensors(), gather_from(tensors())
    differs: list[int] = []
    trust, good = Trust(lambda: differs.append(1)), Trust()
    other = GatheredDataset(data, lambda s: [t + 1 for t in default_collate(s)], gather, trust, lambda: None)
    ready = other.__getitems__([0, 1]).batch
    assert torch.equal(ready[1], torch.tensor([1, 2])), "the script's own batch is what it gets"
    assert type(other.__getitems__([0, 1])) is list and not trust.same and differs == [1]
    same = GatheredDataset(data, default_collate, gather, good, lambda: used.append(1))
    for _ in range(CHECKED):
        same.__getitems__([0, 1])
    assert good.same and not used
    same.__getitems__([0, 1])
    assert used == [1]


def test_an_error_is_torchs_own(tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        batched_fetch.apply(target, {})
        with pytest.raises(IndexError, match="out of bounds"):
            epochs(DataLoader(tensors(), batch_size=2, sampler=[0, 40]))


def test_refused_where_the_data_set_is_the_scripts_own() -> None:
    findings = findings_of("augment", dataset="Clips")
    refused = batched_fetch.settings(findings.findings[0], findings, machine_of())
    assert isinstance(refused, Refusal) and "Clips" in refused.reason
