"""The loss of the step before is asked for without waiting for this one."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
import torch

from hotlap_workloads.engine import loss_watch
from hotlap_workloads.engine.loss_watch import LossWatch
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.errors import WorkloadError


class Unreadable(torch.Tensor):
    """On the device: whoever reads it waits for all that was queued."""

    def __bool__(self) -> bool:
        raise AssertionError("the device was asked")


class Event:
    recorded: ClassVar[list[Event]]
    waited: ClassVar[list[Event]]

    def record(self) -> None:
        self.recorded.append(self)

    def synchronize(self) -> None:
        self.waited.append(self)


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LossWatch:
    """Of a training on a device that is not here."""
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(loss_watch, "_pinned", lambda: torch.zeros((), dtype=torch.bool))
    monkeypatch.setattr(Event, "recorded", [], raising=False)
    monkeypatch.setattr(Event, "waited", [], raising=False)
    return LossWatch("stop", tmp_path, Ranks(), torch.device("cuda"))


def test_it_waits_for_the_step_before_alone(watch: LossWatch) -> None:
    for step in range(1, 4):
        watch.look(step, torch.tensor(1.0).as_subclass(Unreadable), None)
    assert len(Event.recorded) == 3 and Event.waited == Event.recorded[:2]
    watch.settle()
    assert Event.waited == Event.recorded


def test_a_loss_that_is_no_number_is_told_one_step_late(watch: LossWatch, tmp_path: Path) -> None:
    for step, loss in ((1, 1.0), (2, float("nan"))):
        watch.look(step, torch.tensor(loss), step)
    with pytest.raises(WorkloadError, match="The loss of step 2 is nan"):
        watch.look(3, torch.tensor(1.0), 3)
    assert torch.load(tmp_path / "nan_batch.rank0.pt")["batch"] == 2


@pytest.mark.gpu
def test_the_device_may_be_busy_with_the_next_step(tmp_path: Path) -> None:
    watch, wait = LossWatch("stop", tmp_path, Ranks(), torch.device("cuda")), torch.cuda.Event()
    watch.look(1, torch.ones((), device="cuda"), None)
    torch.cuda._sleep(1 << 30)
    wait.record()
    watch.look(2, torch.ones((), device="cuda"), None)
    assert not wait.query(), "the second step goes on"
    watch.look(3, torch.full((), torch.nan, device="cuda"), None)
    with pytest.raises(WorkloadError, match="step 3"):
        watch.settle()
