"""The helper `keep_samples`: samples that never change are computed once, all others as they were."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hotlap.patch.helpers.keep_samples import TRIED_SAMPLES, KeptSamples, keep_samples

BIG = 1 << 20


class Counted(Dataset[Any]):
    """Counts outside of itself how often each sample is computed."""

    def __init__(self, calls: list[int], length: int = 16) -> None:
        self.calls, self.length, self.scale = calls, length, 1.0

    def __len__(self) -> int:
        return self.length

    def sample(self, index: int) -> Any:
        return torch.full((3,), index * self.scale), {"name": f"n{index}", "pixels": np.arange(index, index + 4)}

    def __getitem__(self, index: int) -> Any:
        self.calls.append(index)
        return self.sample(index)


def tried(calls: list[int]) -> int:
    """How many are left when the trial's own are taken away."""
    return len(calls) - 2 * TRIED_SAMPLES


def test_each_is_computed_once_and_each_use_has_a_copy() -> None:
    calls: list[int] = []
    data = keep_samples(Counted(calls), BIG)
    for _ in range(3):
        for index in range(16):
            tensor, rest = data[index]
            assert tensor.tolist() == [index] * 3 and rest["pixels"].tolist() == list(range(index, index + 4))
            tensor.zero_()
            rest["pixels"][:] = -1
            rest["name"] = "other"
    assert tried(calls) == 16


def test_batches_are_the_same_as_without() -> None:
    def batches(data: Any) -> list[Any]:
        torch.manual_seed(3)
        return [(x.tolist(), rest["name"]) for _ in range(2) for x, rest in DataLoader(data, 4, shuffle=True)]

    assert batches(keep_samples(Counted([]), BIG)) == batches(Counted([]))


def test_it_looks_like_the_data_set() -> None:
    data: Any = keep_samples(Counted([]), BIG)
    assert len(data) == 16 and data.length == 16 and not hasattr(data, "classes") and not hasattr(data, "__next__")
    again = pickle.loads(pickle.dumps(data))
    assert isinstance(again, KeptSamples) and again[3][0].tolist() == [3.0] * 3


def test_what_is_changed_of_it_is_seen() -> None:
    calls: list[int] = []
    inner = Counted(calls)
    data: Any = keep_samples(inner, BIG)
    assert data[2][0].tolist() == [2.0] * 3
    data.scale = 10.0  # through the loader's own data set
    assert inner.scale == 10.0 and data[2][0].tolist() == [20.0] * 3
    inner.scale = 100.0
    assert data[2][0].tolist() == [200.0] * 3
    for scale in (1.0, 2.0):
        inner.scale = scale
        assert [data[2][0].tolist() for _ in range(3)] == [[2.0 * scale] * 3] * 3
    assert len(calls) < 4 * 2 * TRIED_SAMPLES + 12, "one that always changes is not tried for ever"


@pytest.mark.parametrize("draw", [random.random, np.random.rand, lambda: torch.rand(()).item()])
def test_samples_that_draw_are_left_alone_and_draw_what_they_would_have(draw: Any) -> None:
    class Drawn(Counted):
        def sample(self, index: int) -> Any:
            draw()  # also where it comes to nothing
            return index, draw()

    def drawn(data: Any) -> list[Any]:
        random.seed(1)
        np.random.seed(1)
        torch.manual_seed(1)
        return [data[index] for index in (3, 1, 3, 1)]

    assert drawn(keep_samples(Drawn([]), BIG)) == drawn(Drawn([]))


def test_a_generator_of_its_own_is_seen_by_its_samples() -> None:
    class Own(Counted):
        generator = np.random.default_rng(0)

        def sample(self, index: int) -> Any:
            return self.generator.random(2) > 0.5

    calls: list[int] = []
    data = keep_samples(Own(calls), BIG)
    for _ in range(5):
        data[0]
    assert tried(calls) <= 5 and len(calls) >= 5 + 2 * TRIED_SAMPLES


@pytest.mark.parametrize("sample", [object(), torch.zeros(2, requires_grad=True), np.array([object()]), [{1}]])
def test_what_cannot_be_copied_for_certain_is_not_kept(sample: Any) -> None:
    class Other(Counted):
        def sample(self, index: int) -> Any:
            return sample

    calls: list[int] = []
    data = keep_samples(Other(calls), BIG)
    assert data[0] is data[0] and tried(calls) == 2


def test_the_bound_is_kept_and_ranks_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(most: int) -> int:
        calls: list[int] = []
        data = keep_samples(Counted(calls), most)
        for index in [*range(16), *range(16)]:
            data[index]
        return 32 - tried(calls)

    room = kept(2000)
    assert 0 < room < 16
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert kept(4000) == room


def test_errors_are_the_data_sets_own_and_other_indices_go_through() -> None:
    class Short(Counted):
        def sample(self, index: int) -> Any:
            if index == 5:
                raise ValueError("sample 5")
            return index

    data = keep_samples(Short([], 4), BIG)
    assert data[2] == 2 and data[-1] == -1 and data[np.int64(3)] == 3
    for _ in range(2):
        with pytest.raises(ValueError, match="sample 5"):
            data[5]


def test_worker_processes_keep_none() -> None:
    data = keep_samples(Counted([]), BIG)
    assert [x[:, 0].tolist() for x, _ in DataLoader(data, 8, num_workers=1)] == [[*map(float, range(8))],
                                                                               [*map(float, range(8, 16))]]  # fmt: skip
    assert vars(data)["kept"] == {}
