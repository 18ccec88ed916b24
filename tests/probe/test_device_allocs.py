"""What is told of the device's allocator: nothing on a CPU; elsewhere its own counters (here of a made-up device)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hotlap.probe import device_allocs

STATS = {"num_device_alloc": 7, "num_alloc_retries": 1, "allocated_bytes.all.peak": 9}


def look(initialized: bool, stats: Callable[[], dict[str, int]] = lambda: STATS) -> list[Any]:
    rows: list[Any] = []
    looks: list[Any] = []
    cuda = SimpleNamespace(is_initialized=lambda: initialized, memory_stats=lambda device: stats() | {"device": device})
    rec = SimpleNamespace(emit=rows.append, on_look=looks, device=1)
    context: Any = SimpleNamespace(
        torch=SimpleNamespace(cuda=cuda), rec=rec, failed=lambda what, err: rows.append((what, str(err)))
    )
    device_allocs.install(context)
    for call in looks:
        call(20)
    return rows


@pytest.mark.parametrize(
    ("options", "expandable"), [("", False), ("max_split_size_mb:9,expandable_segments: True", True)]
)
def test_counters_and_options(options: str, expandable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", options)
    (row,) = look(True)
    assert row.name == "device_memory"
    assert row.value == {"step": 20, "driver_allocs": 7, "retries": 1, "expandable": expandable}


def test_a_process_that_does_not_use_a_device_is_not_asked() -> None:
    assert look(False) == []


def test_an_allocator_that_does_not_count_is_noted() -> None:
    def none() -> dict[str, int]:
        raise RuntimeError("no statistics")

    assert look(True, none) == [("device_memory", "no statistics")]
