"""The switch for fp32 products, in torch's older and newer form; it can be set where there is no GPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hotlap.lever.catalog import tf32
from hotlap.testing.lever_target import LocalTarget

MATMUL: Any = torch.backends.cuda.matmul

NEWER = hasattr(MATMUL, "fp32_precision")
"""Whether this torch has the newer switch."""
newer_switch = pytest.mark.skipif(not NEWER, reason="this torch has one switch alone")


@pytest.fixture(autouse=True)
def as_torch_begins() -> Iterator[None]:
    yield
    if NEWER:
        torch.backends.mkldnn.matmul.fp32_precision = "none"
    torch.set_float32_matmul_precision("highest")
    if NEWER:
        MATMUL.fp32_precision = "none"


def applied(folder: Path) -> tuple[int, bool]:
    """How many changes, and whether products are fast while they stand."""
    with LocalTarget(str(folder)) as target:
        tf32.apply(target, {})
        model = nn.Linear(2, 2)
        model(torch.zeros(1, 2))
        model(torch.zeros(1, 2))
        fast = MATMUL.fp32_precision == "tf32" if NEWER else torch.get_float32_matmul_precision() == "high"
        found = target.changes, fast
    assert target.problems == []
    return found


def test_torch_as_it_begins(tmp_path: Path) -> None:
    assert applied(tmp_path) == (1, True)
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize("say", [
    pytest.param(lambda: setattr(MATMUL, "fp32_precision", "tf32"), marks=newer_switch),
    lambda: torch.set_float32_matmul_precision("high"),
])  # fmt: skip
def test_one_that_is_fast_already_is_left(tmp_path: Path, say: Any) -> None:
    say()
    assert applied(tmp_path) == (0, True)


def test_a_torch_with_one_switch_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "matmul", object())
    assert applied(tmp_path)[0] == 1 and torch.get_float32_matmul_precision() == "highest"


@newer_switch
def test_the_older_switch_may_refuse_to_answer(tmp_path: Path) -> None:
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    with pytest.raises(RuntimeError, match="mix of the legacy and new"):
        torch.get_float32_matmul_precision()
    before = MATMUL.fp32_precision
    assert applied(tmp_path) == (1, True) and MATMUL.fp32_precision == before
