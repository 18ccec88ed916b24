"""What is asked of a loader, and what is not: a question can open a file in the process that forks the workers."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler, SubsetRandomSampler

from hotlap.diagnose.diagnose import diagnose
from hotlap.lever.catalog import cache_decode, cache_sample
from hotlap.lever.contract import Refusal
from hotlap.probe.batches import sample_bytes
from hotlap.probe.loader_passes import loader_facts
from hotlap.records.findings import Finding
from hotlap.testing.timelines import cpu_machine


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


def test_what_a_sample_takes_is_measured_and_decides_whether_caches_fit(watched: Any) -> None:
    timeline, _ = watched("""
    model = net(); opt = torch.optim.SGD(model.parameters(), 0.1)
    data = TensorDataset(torch.randn(50_000, 4), torch.zeros(50_000, dtype=torch.long))
    for epoch in range(2):
        for step, (x, y) in enumerate(DataLoader(data, 8)):
            opt.zero_grad(); model(x).sum().backward(); opt.step()
            if step == 20:
                break
    """)
    findings = diagnose(timeline, cpu_machine(), "train.py")
    loader = findings.script.loader
    assert loader is not None and (loader.sample_bytes, loader.dataset_len) == (4 * 4 + 8, 50_000)
    assert sum(row.name == "loader" for row in timeline.setting) == 1
    finding = Finding("decode", 0.5, 0.1, False, [], "", phase="data_wait")
    for lever in (cache_decode, cache_sample):
        little = lever.settings(finding, findings, cpu_machine(shm_free_bytes=2 << 20))
        assert isinstance(little, Refusal) and "not fit half" in little.reason
        assert lever.settings(finding, findings, cpu_machine(shm_free_bytes=4 << 20)) == [{"max_bytes": 2 << 20}]


@pytest.mark.parametrize(
    ("batch", "size"),
    [
        ([torch.zeros(4, 3), {"y": torch.zeros(4, dtype=torch.uint8), "name": ["ab"] * 4}], 3 * 4 + 1 + 2),
        ([[numpy.zeros(5, numpy.int16), 1.5, None, True]] * 4, 5 * 2 + 3 * 8),
        ([torch.zeros(100)] * 400, 100 * 400),
        (torch.zeros(4, 2).to_sparse(), None),
        ([object(), torch.zeros(4)], None),
        ([], 0),
    ],
)
def test_bytes_of_a_sample(batch: Any, size: int | None) -> None:
    assert sample_bytes(batch, 4) == size and sample_bytes(batch, 0) is None
