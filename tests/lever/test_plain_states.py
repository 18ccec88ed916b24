"""What is copied for a checkpoint makes the same file; what might not is told apart."""

from __future__ import annotations

import copy
import io
from argparse import Namespace
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from hotlap.lever.plain_states import is_plain


class Settings(dict[str, Any]):
    """A mapping of the script's own."""


class Text(str):
    """A text of the script's own."""

    __slots__ = ()


def marked(value: Any) -> Any:
    value._no_weight_decay = True
    return value


def trained() -> dict[str, Any]:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 10)
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}


def drawn() -> dict[str, Any]:
    import random

    return {"python": random.getstate(), "numpy": numpy.random.get_state(), "torch": torch.get_rng_state()}


def around_itself() -> list[Any]:
    loop: list[Any] = [1]
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    "state",
    [
        trained(), drawn(), around_itself(), torch.ones(2), [nn.Parameter(torch.ones(2))], {(1, "a"): {2.5, None}},
        {"args": Namespace(out=Path("runs"), rates=[0.1], device=torch.device("cpu"), dtype=torch.float16)},
        {"best": numpy.float64(0.5), "scores": numpy.arange(3), "shape": torch.ones(2, 3).shape, "raw": b"\0"},
        defaultdict(list, loss=[1.0]),
    ],
)  # fmt: skip
def test_values_make_the_same_file(state: Any) -> None:
    files = io.BytesIO(), io.BytesIO()
    torch.save(state, files[0])
    torch.save(copy.deepcopy(state), files[1])
    assert is_plain(state) and files[0].getvalue() == files[1].getvalue()


@pytest.mark.parametrize(
    "value",
    [
        lambda: 0, nn.Linear(1, 1), Settings(), Text("a"), io.BytesIO(), torch.nn.Module, iter([1]),
        marked(torch.ones(2)), marked(nn.Parameter(torch.ones(2))), {"b": {len}},
        torch.ones(2).as_subclass(type("Kind", (torch.Tensor,), {})), defaultdict(lambda: 1),
        numpy.array([len], dtype=object), numpy.ma.masked_array([1]), Namespace(key=len), range(3),
    ],
)  # fmt: skip
def test_what_has_something_of_its_own_is_found_wherever_it_lies(value: Any) -> None:
    for state in (value, {"a": [1, (2, value)]}, OrderedDict(a=Namespace(b=[value]))):
        assert not is_plain(state)
    versions: Any = OrderedDict(a=1)
    versions._metadata = {"": {"version": value}}
    assert not is_plain(versions)
