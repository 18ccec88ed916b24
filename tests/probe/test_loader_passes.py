"""What is asked of a loader, and what is not: a question can open a file in the process that forks the workers."""

from __future__ import annotations

from typing import Any

import pytest
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler, SubsetRandomSampler

from hotlap.probe.loader_passes import loader_facts


class Rows(Dataset[int]):
    def __init__(self) -> None:
        self.rows: Any = range(12)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> int:
        return index


class Opening(Rows):
    def __init__(self) -> None:
        self.rows = None

    def __len__(self) -> int:
        if self.rows is None:
            self.open()
        return len(self.rows)

    def open(self) -> None:
        self.rows = range(12)


class Pairs(BatchSampler):
    """The script's own: it asks for no length."""

    def __init__(self) -> None:
        super().__init__(SequentialSampler(range(12)), 2, False)

    def __len__(self) -> int:
        return 6


OWN: list[dict[str, Any]] = [{"sampler": SubsetRandomSampler(range(12))}, {"batch_sampler": Pairs()}]


@pytest.mark.parametrize("options", [*OWN, {"batch_size": None, "sampler": [1, 2]}])
def test_a_length_that_opens_something_is_not_asked_for(options: dict[str, Any]) -> None:
    data = Opening()
    loader: DataLoader[int] = DataLoader(data, **options)
    assert loader_facts(loader, 0)["dataset_len"] is None and data.rows is None
    assert loader_facts(loader, 0)["batches_per_epoch"] == len(loader)


@pytest.mark.parametrize("options", [*OWN, {"shuffle": True}, {"batch_size": None}])
def test_a_plain_length_is(options: dict[str, Any]) -> None:
    assert loader_facts(DataLoader(Rows(), **options), 0)["dataset_len"] == 12


def test_where_torch_asks_so_does_the_probe() -> None:
    data = Opening()
    assert loader_facts(DataLoader(data), 0)["dataset_len"] == 12
