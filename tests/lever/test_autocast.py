"""A network that calls a part of itself without gradients first, and then with them, trains that part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hotlap.lever import weight_casts
from hotlap.lever.catalog import autocast
from hotlap.testing.lever_target import LocalTarget


class SelfConditioned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.seen = nn.Linear(8, 8), torch.is_autocast_cache_enabled
        self.kept: list[bool] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept.append(self.seen())
        with torch.no_grad():
            guess = self.body(x)
        out: torch.Tensor = self.body(x + guess)
        return out


def gradient(tmp_path: Path) -> tuple[SelfConditioned, Any]:
    torch.manual_seed(0)
    model = SelfConditioned()
    with LocalTarget(str(tmp_path)) as target:
        autocast.apply(target, {"dtype": "bf16"})
        model(torch.randn(2, 8)).sum().backward()
        assert target.changes == 1
    return model, model.body.weight.grad


def test_a_guess_without_gradients_takes_none_from_the_weights(tmp_path: Path) -> None:
    _, found = gradient(tmp_path)
    assert found is not None and found.abs().sum() > 0


@pytest.mark.parametrize("forgets", [True, False])
def test_casts_are_kept_only_where_torch_keeps_their_gradients(
    forgets: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autocast, "casts_forget_gradients", lambda: forgets)
    assert gradient(tmp_path)[0].kept == [not forgets]


def test_what_this_torch_does_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.ones(1, 1, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.no_grad():
            nn.functional.linear(torch.ones(1, 1), weight)
        lost = not nn.functional.linear(torch.ones(1, 1), weight).requires_grad
    weight_casts.casts_forget_gradients.cache_clear()
    with torch.no_grad():
        assert weight_casts.casts_forget_gradients() is lost
    weight_casts.casts_forget_gradients.cache_clear()
    with torch.inference_mode():
        assert weight_casts.casts_forget_gradients() is lost
    monkeypatch.setattr(nn.functional, "linear", lambda x, w: x @ w.detach())
    weight_casts.casts_forget_gradients.cache_clear()
    assert weight_casts.casts_forget_gradients()
    weight_casts.casts_forget_gradients.cache_clear()


def test_an_export_has_no_casts(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    with LocalTarget(str(tmp_path)) as target:
        autocast.apply(target, {"dtype": "bf16"})
        model(torch.randn(2, 8)).sum().backward()
        traced = torch.jit.trace(model.eval(), torch.randn(2, 8), check_trace=False)
        assert target.changes == 1
    assert "aten::to" not in str(traced.inlined_graph)
