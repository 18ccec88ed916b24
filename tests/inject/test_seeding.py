"""Seeds that a trial shifts: each once, the device's own too, and CUDA stays asleep."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch

from hotlap.inject.seeding import STRIDE, offset_seeds
from hotlap.probe.undo import Undo

OTHER = 2 * STRIDE


def never(name: str, ready: Callable[[ModuleType], None]) -> None:
    """numpy is not imported here."""


@pytest.fixture
def device_seeds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """What reaches the device's generators, while seeds are shifted by an offset of 2."""
    seen: list[tuple[str, int]] = []
    for name in ("manual_seed", "manual_seed_all"):

        def seed(seed: int, name: str = name) -> None:
            seen.append((name, seed))

        monkeypatch.setattr(torch.cuda, name, seed)
        monkeypatch.setattr(torch.cuda.random, name, seed)
    states, undo = (torch.get_rng_state(), random.getstate()), Undo()
    offset_seeds(2, undo, never)
    seen.clear()
    yield seen
    assert undo.undo_all() == []
    torch.set_rng_state(states[0])
    random.setstate(states[1])


def test_a_seed_reaches_the_device_shifted_once(device_seeds: list[tuple[str, int]]) -> None:
    torch.manual_seed(5)
    assert torch.initial_seed() == 5 + OTHER and device_seeds == [("manual_seed_all", 5 + OTHER)]


def test_the_devices_own_seeds_are_shifted(device_seeds: list[tuple[str, int]]) -> None:
    awake = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # by another test of this process
    calls: list[Any] = [torch.cuda.manual_seed, torch.cuda.manual_seed_all, torch.cuda.random.manual_seed]
    for call in calls:
        call(7)
    torch.cuda.random.manual_seed_all(seed=7)
    names = ["manual_seed", "manual_seed_all", "manual_seed", "manual_seed_all"]
    assert device_seeds == [(name, 7 + OTHER) for name in names]
    assert torch.cuda.is_initialized() == awake  # type: ignore[no-untyped-call]


def test_a_seed_that_is_refused_leaves_the_next_one_shifted(device_seeds: list[tuple[str, int]]) -> None:
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        torch.manual_seed("five")
    torch.cuda.manual_seed(1)
    assert device_seeds == [("manual_seed", 1 + OTHER)]
