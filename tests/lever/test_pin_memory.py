"""Pinning, beside a made-up accelerator: what is set, what is refused, and which copies no longer wait."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from hotlap.lever.catalog import pin_memory
from hotlap.lever.contract import Refusal
from hotlap.lever.pinned_copies import without_waiting
from hotlap.lever.worker_safety import can_use_workers, lies_on_device
from hotlap.testing.lever_kit import findings_of, machine_for, machine_of
from hotlap.testing.lever_target import LocalTarget


class Tensor:
    """What a copy asks of a tensor; ``to`` and ``cuda`` give the keywords that they got."""

    def __init__(self, pinned: bool = True, device: str = "cpu") -> None:
        self.device = torch.device(device)
        self.is_pinned = lambda: pinned


@pytest.mark.parametrize(
    ("method", "args", "kwargs"),
    [("to", ("cuda:1",), {}), ("to", (0,), {}), ("to", (), {"device": torch.device("cuda")}), ("cuda", (), {}),
     ("cuda", (0,), {})],
)  # fmt: skip
def test_copies_to_a_device_do_not_wait(method: str, args: Any, kwargs: Any) -> None:
    copy = without_waiting(lambda tensor, *a, **k: k, method)
    assert copy(Tensor(), *args, **kwargs) == {**kwargs, "non_blocking": True}
    assert copy(Tensor(pinned=False), *args, **kwargs) == kwargs
    assert copy(Tensor(device="meta"), *args, **kwargs) == kwargs


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [(("cpu",), {}), ((torch.float16,), {}), (("cuda", torch.float16), {}), ((torch.zeros(1),), {}),
     (("cuda",), {"non_blocking": False}), ((), {"dtype": torch.float16}), (("cuda",), {"copy": True})],
)  # fmt: skip
def test_other_calls_are_left_as_they_are(args: Any, kwargs: Any) -> None:
    copy = without_waiting(lambda tensor, *a, **k: k, "to")
    assert copy(Tensor(), *args, **kwargs) == kwargs


def visit(folder: Path, loader: DataLoader[Any], non_blocking: bool = True) -> tuple[int, bool, bool]:
    """Changes, whether the loader pins in the loop, and whether ``Tensor.to`` is another one there."""
    real = torch.Tensor.to
    with LocalTarget(str(folder)) as target:
        pin_memory.apply(target, {"non_blocking": non_blocking})
        iter(loader)
        seen = (target.changes, loader.pin_memory, torch.Tensor.to is not real)
    assert torch.Tensor.to is real and not target.problems
    return seen


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true")
def test_the_loader_pins_beside_an_accelerator_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = TensorDataset(torch.zeros(8, 2))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert visit(tmp_path, DataLoader(data, batch_size=4)) == (0, False, False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    loader = DataLoader(data, batch_size=4)
    changes, pins, replaced = visit(tmp_path, loader)
    assert changes > 0 and pins and replaced and not loader.pin_memory
    assert visit(tmp_path, DataLoader(data, batch_size=4), non_blocking=False) == (1, True, False)
    assert visit(tmp_path, DataLoader(data, batch_size=4, pin_memory=True)) == (0, True, False)


def test_tensors_of_a_device_cannot_be_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class OnDevice(TensorDataset):
        def __init__(self) -> None:
            super().__init__(torch.zeros(8, 2))
            self.there = torch.zeros(8, device="meta")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for data in (OnDevice(), TensorDataset(torch.zeros(8, 2, device="meta"))):
        assert lies_on_device(data) and visit(tmp_path, DataLoader(data, batch_size=4)) == (0, False, False)
        assert not can_use_workers(DataLoader(data, batch_size=4))
    assert not lies_on_device(TensorDataset(torch.zeros(8, 2))) and not lies_on_device([torch.zeros(2)])


def test_refusals_say_why() -> None:
    def offered(machine: Any, **loader: Any) -> Any:
        findings = findings_of("h2d-copy", **loader)
        finding = pin_memory.evidence(findings)
        assert finding is not None
        return pin_memory.settings(finding, findings, machine)

    beside = machine_for(pin_memory)
    assert offered(beside)[0] == {"non_blocking": True}
    for refused, word in ((offered(machine_of()), "accelerator"), (offered(beside, pin_memory=True), "already")):
        assert isinstance(refused, Refusal) and word in refused.reason
    assert "accelerator" in (pin_memory.check({"non_blocking": True}, machine_of()) or "")
    found = findings_of("h2d-copy")
    without = dataclasses.replace(found, script=dataclasses.replace(found.script, loader=None))
    assert "no DataLoader" in pin_memory.settings(without.findings[0], without, beside).reason
