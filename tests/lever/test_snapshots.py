"""Copies made in the memory of earlier copies are like any deep copy."""

from __future__ import annotations

import copy
import io
from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hotlap.lever.snapshots import Snapshots, copies_made, tensors_in


def saved(state: Any) -> bytes:
    out = io.BytesIO()
    torch.save(state, out)
    return out.getvalue()


def trained(steps: int) -> dict[str, Any]:
    """A model and its optimizer after some steps, as scripts save them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(5, 4)).square().mean().backward()
        optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": steps, "names": ["a", "b"]}


def places(state: Any) -> list[int]:
    return [t.data_ptr() for t in tensors_in(state)]


def test_the_next_copy_lies_where_the_last_one_lay() -> None:
    snapshots = Snapshots(1 << 20)
    first = snapshots.take(trained(2))
    where = places(first)
    snapshots.give_back(first)
    state = trained(5)
    again = snapshots.take(state)
    assert places(again) == where
    assert saved(again) == saved(state) and again["step"] == 5
    assert isinstance(again["model"], OrderedDict) and again["model"]._metadata == state["model"]._metadata  # type: ignore[attr-defined]


def test_a_copy_that_is_still_needed_is_left_alone() -> None:
    snapshots = Snapshots(1 << 20)
    snapshots.give_back(snapshots.take(trained(1)))
    held = snapshots.take(trained(2))
    before = saved(held)
    other = snapshots.take(trained(3))
    assert not {*places(held)} & {*places(other)} and saved(held) == before


def test_a_copy_shares_nothing_with_what_is_trained_on() -> None:
    snapshots = Snapshots(1 << 20)
    snapshots.give_back(snapshots.take(trained(1)))
    state = trained(2)
    taken = snapshots.take(state)
    assert not {*places(state)} & {*places(taken)}


def tied() -> dict[str, Tensor]:
    weight = torch.randn(3, 3)
    return {"a": weight, "b": weight.view(9), "c": torch.randn(2)}


def part_of_more() -> dict[str, Tensor]:
    return {"row": torch.randn(4, 4)[1], "c": torch.randn(2)}


def turned() -> dict[str, Tensor]:
    return {"t": torch.randn(4, 3).t(), "last": torch.randn(1, 2, 3, 4).to(memory_format=torch.channels_last)}


def sparse() -> dict[str, Tensor]:
    return {"s": torch.eye(3).to_sparse(), "empty": torch.zeros(0), "c": torch.randn(2)}


def parameters() -> dict[str, Any]:
    return {"model": nn.Linear(2, 2), "weight": nn.Parameter(torch.randn(2))}


@pytest.mark.parametrize("make", [tied, part_of_more, turned, sparse, parameters])
def test_every_state_is_copied_as_deepcopy_does(make: Any) -> None:
    snapshots = Snapshots(1 << 20)
    for _ in range(3):
        state = make()
        taken = snapshots.take(state)
        assert saved(taken) == saved(copy.deepcopy(state))
        snapshots.give_back(taken)


def test_another_state_is_copied_anew() -> None:
    snapshots = Snapshots(1 << 20)
    snapshots.give_back(snapshots.take({"a": torch.zeros(3)}))
    for state in ({"a": torch.ones(4)}, {"a": torch.ones(3).double()}, {"a": torch.ones(3), "b": torch.ones(1)}):
        assert saved(snapshots.take(state)) == saved(state)


def test_a_copy_made_in_inference_mode_is_not_written_into() -> None:
    snapshots = Snapshots(1 << 20)
    with torch.inference_mode():
        snapshots.give_back(snapshots.take({"a": torch.zeros(3)}))
    assert snapshots.take({"a": torch.ones(3)})["a"].tolist() == [1.0, 1.0, 1.0]


def test_what_deepcopy_refuses_is_refused_as_it_does() -> None:
    with pytest.raises(NotImplementedError, match="Opaque"):
        Snapshots(1 << 20).take({"m": torch.randn(2, 3).to_mkldnn(), "c": torch.randn(2)})


def test_the_files_of_a_checkpoint_have_a_copy_each() -> None:
    snapshots = Snapshots(1 << 20)
    kept = [snapshots.take(state) for state in (trained(1), {"rng": torch.zeros(9)})]
    where = [places(state) for state in kept]
    for state in kept:
        snapshots.give_back(state)
    assert [places(snapshots.take(state)) for state in (trained(2), {"rng": torch.ones(9)})] == where


def test_no_more_is_kept_than_is_allowed() -> None:
    snapshots = Snapshots(50)
    large, small = snapshots.take({"a": torch.zeros(100)}), snapshots.take({"b": torch.zeros(9)})
    where = places(large), places(small)
    snapshots.give_back(large)
    again = snapshots.take({"a": torch.ones(100)})
    assert places(again) == where[0], "a single one is kept whatever its size"
    snapshots.give_back(again)
    snapshots.give_back(small)
    assert places(snapshots.take({"b": torch.ones(9)})) == where[1]
    assert not snapshots._spares


class OnDevice(Tensor):
    """A tensor that says it lies on a GPU."""

    device: Any = torch.device("cuda", 1)  # type: ignore[assignment]
    is_cuda: Any = True  # type: ignore[assignment]


def test_each_device_that_copies_has_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        def __init__(self, device: torch.device) -> None:
            self._device = device

        def record_event(self) -> str:
            return f"recorded on {self._device}"

    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    there = [torch.zeros(2).as_subclass(OnDevice) for _ in range(2)]
    assert copies_made({"a": there, "b": torch.zeros(1)}) == ["recorded on cuda:1"]
    assert copies_made({"b": torch.zeros(1), "n": 1}) == []
