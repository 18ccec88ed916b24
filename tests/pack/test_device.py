"""Onto a device, as far as a machine without one can tell: whose device threads use, and what is pinned."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from hotlap.pack import Image, Loader, LoaderSettings, Pack, Tuples, batches
from hotlap.pack.device import DeviceCopy

Make = Callable[..., Pack]


class Copies:
    """Copies to a device that is the CPU."""

    def __init__(self) -> None:
        self.entered: list[str] = []

    def enter_thread(self) -> None:
        self.entered.append(threading.current_thread().name)

    def start(self, batch: dict[str, Any], slot: Any) -> tuple[dict[str, Any], None]:
        return batch, None


def test_each_thread_begins_on_the_loaders_device(make: Make) -> None:
    pack = make([{"label": k} for k in range(40)])
    loader = Loader(pack, 8, {"label": None}, settings=LoaderSettings(mode="background", threads=2, ahead=3))
    copies: Any = Copies()
    loader._copy = copies
    assert len(list(loader)) == 5
    loader.close()
    assert copies.entered and all(name.startswith("hotlap-pack") for name in copies.entered)


def test_the_device_is_that_of_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: SimpleNamespace(device=torch.device("cuda", 3)))
    monkeypatch.setattr(torch.cuda, "set_device", entered.append)
    DeviceCopy(torch.device("cuda")).enter_thread()
    assert entered == [torch.device("cuda", 3)]


@pytest.mark.parametrize("pin", [True, False])
def test_images_put_back_into_their_places_are_pinned_as_buffers_are(
    make: Make, pin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"image": np.full((3, 4, 5), k, np.uint8)} for k in range(12)]
    loader = Loader(make(rows), 6, {"image": Image((4, 4), at="center", flip=0.5)}, Tuples([[0, 1], [2, 3], [4, 5]]))
    asked: list[bool] = []
    plain = torch.empty_like

    def empty_like(tensor: torch.Tensor, pin_memory: bool = False) -> torch.Tensor:
        asked.append(pin_memory)
        return plain(tensor)

    monkeypatch.setattr(loader._maker, "_pin", pin)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    monkeypatch.setattr(batches.torch, "empty_like", empty_like)
    assert len(list(loader)) == 1 and (True in asked) == pin


@pytest.mark.gpu
def test_mirrored_pairs_are_pinned(make: Make) -> None:
    rows = [{"image": np.full((3, 4, 5), k, np.uint8)} for k in range(12)]
    view = {"image": Image((4, 4), at="center", flip=0.5, dtype=torch.uint8)}
    loader = Loader(make(rows), 6, view, Tuples([[0, 1], [2, 3], [4, 5]]), "cuda")
    (batch,) = [loader._maker.make(0, 0)[0]]
    assert batch["image"].is_pinned() and all(b["image"].is_cuda for b in loader)
