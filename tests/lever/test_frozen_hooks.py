"""What is trained inside a frozen network without being a parameter of it: its gradients are left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from hotlap.lever.catalog import teacher_inference
from hotlap.testing.lever_target import LocalTarget

SETTING = {"dtype": "bf16", "channels_last": True}
IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


class Backbone(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)
        self.low_rank: Any = None
        self.kept: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor, more: Any = None) -> Any:
        out = self.first(x)
        if more is not None:
            out = out + more.prompt
        if self.low_rank is not None:
            out = out + self.low_rank[0]
        return SimpleNamespace(maps=self.second(out))


def frozen() -> Backbone:
    torch.manual_seed(0)
    return Backbone().requires_grad_(False).eval()


def adapter_in_a_hook(backbone: Backbone) -> tuple[torch.Tensor, Callable[[], Any]]:
    adapter = nn.Conv2d(4, 4, 1)
    backbone.first.register_forward_hook(lambda module, given, output: output + adapter(output))
    return adapter.weight, lambda: backbone(IMAGES).maps.sum()


def low_rank_tensor(backbone: Backbone) -> tuple[torch.Tensor, Callable[[], Any]]:
    trained = torch.zeros(4, 6, 6, requires_grad=True)
    backbone.low_rank = [trained]
    return trained, lambda: backbone(IMAGES).maps.sum()


def argument_that_is_an_object(backbone: Backbone) -> tuple[torch.Tensor, Callable[[], Any]]:
    more = SimpleNamespace(prompt=torch.zeros(4, 6, 6, requires_grad=True))
    return more.prompt, lambda: backbone(IMAGES, more).maps.sum()


def network_beside_it(backbone: Backbone) -> tuple[torch.Tensor, Callable[[], Any]]:
    """A hook keeps what it makes of an inner layer's output; the frozen network gives none of it."""
    side = nn.Conv2d(4, 1, 1)
    backbone.first.register_forward_hook(lambda module, given, output: backbone.kept.append(side(output)))

    def loss() -> Any:
        backbone.kept.clear()
        backbone(IMAGES)
        return backbone.kept[0].sum()

    return side.weight, loss


BUILT = (adapter_in_a_hook, low_rank_tensor, argument_that_is_an_object, network_beside_it)


@pytest.mark.parametrize("built", BUILT, ids=lambda f: f.__name__)
def test_what_is_trained_inside_keeps_its_gradients(built: Any, tmp_path: Path) -> None:
    def gradients(levers: bool) -> list[torch.Tensor]:
        backbone = frozen()
        trained, loss = built(backbone)
        found = []
        with LocalTarget(str(tmp_path)) as target:
            if levers:
                teacher_inference.apply(target, SETTING)
            for _ in range(3):
                trained.grad = None
                loss().backward()
                assert trained.grad is not None
                found.append(trained.grad)
            if levers:
                assert target.changes == 0 and "trained inside" in target.reasons[0]
                assert not backbone._forward_hooks and not backbone._forward_pre_hooks
                assert backbone.second.weight.is_contiguous()
        assert target.problems == []
        return found

    for mine, expected in zip(gradients(levers=True), gradients(levers=False), strict=True):
        torch.testing.assert_close(mine, expected)


def test_features_that_a_hook_keeps_are_nobodys_gradients(tmp_path: Path) -> None:
    backbone = frozen()
    backbone.first.register_forward_hook(lambda module, given, output: backbone.kept.append(output))
    with LocalTarget(str(tmp_path)) as target:
        teacher_inference.apply(target, SETTING)
        for _ in range(2):
            backbone(IMAGES)
        assert target.changes == 1 and target.reasons == []
        assert [kept.dtype for kept in backbone.kept] == [torch.float32, torch.bfloat16]


def test_a_first_call_that_fails_tells_nothing(tmp_path: Path) -> None:
    backbone = frozen()
    trained, loss = low_rank_tensor(backbone)
    with LocalTarget(str(tmp_path)) as target:
        teacher_inference.apply(target, SETTING)
        with pytest.raises(RuntimeError):
            backbone(torch.randn(2, 5, 8, 8))
        loss().backward()
        assert trained.grad is not None and target.changes == 0
