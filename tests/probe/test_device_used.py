"""Which device trains, by what its optimizer updates (here made-up tensors, whose device is only said)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hotlap.probe import device_used
from hotlap.records.rows import SCHEMA, Header, Setting
from hotlap.records.timeline import Timeline


def told(*devices: str) -> tuple[list[Setting], int | None]:
    rows: list[Setting] = []
    rec = SimpleNamespace(device=None, emit=rows.append)
    cuda = SimpleNamespace(current_device=lambda: 0, get_device_name=lambda index: f"Card {index}")
    fake = SimpleNamespace(cuda=cuda, _C=torch._C)
    context: Any = SimpleNamespace(rec=rec, torch=fake)
    optimizer = SimpleNamespace(
        param_groups=[{"params": [SimpleNamespace(device=torch.device(name)) for name in devices]}]
    )
    used = device_used.install(context)
    used.optimizer(optimizer)
    used.optimizer(optimizer)
    return rows, rec.device


@pytest.mark.parametrize(
    ("devices", "value", "index"),
    [
        (("cuda:1",), {"name": "Card 1", "type": "cuda", "index": 1}, 1),
        (("cpu", "cuda"), {"name": "Card 0", "type": "cuda", "index": 0}, 0),
        (("mps",), {"name": "mps", "type": "mps", "index": None}, None),
    ],
)
def test_the_device_of_the_parameters_is_told_once(
    devices: tuple[str, ...], value: dict[str, Any], index: int | None
) -> None:
    rows, device = told(*devices)
    assert [row.value for row in rows] == [value] and device == index


def test_nothing_is_told_of_a_cpu() -> None:
    assert told("cpu") == ([], None)


def test_a_timeline_knows_the_device_that_its_header_could_not() -> None:
    header = Header(SCHEMA, "1", "train", 1, 1, 0, 1, [], "", "", "", "cpu", 0, 0.0)
    timeline = Timeline(header)
    assert timeline.device == "cpu" and timeline.device_setting is None
    timeline.add(Setting("device", {"name": "Card 1", "type": "cuda", "index": 1}))
    assert timeline.device == "Card 1"
