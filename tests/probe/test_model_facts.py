"""What a model is made of."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hotlap.probe.model_facts import model_facts


@pytest.mark.parametrize(
    ("layer", "small"),
    [
        (nn.GRU(96, 96), True),
        (nn.RNN(96, 96), True),
        (nn.GRU(16, 512), False),
        (nn.LSTM(96, 96), False),
        (nn.Linear(96, 96), False),
    ],
    ids=lambda v: repr(v),
)
def test_small_layers_that_go_step_by_step(layer: nn.Module, small: bool) -> None:
    facts = model_facts(torch, nn.Sequential(nn.Embedding(1000, 96), layer))
    assert facts["stepwise_frac"] == (1.0 if small else 0.0)
    half = model_facts(torch, nn.ModuleList([layer, nn.Conv1d(96, 96, 1), nn.Linear(96, 96)]))
    assert (0.4 < half["stepwise_frac"] < 1.0) if small else half["stepwise_frac"] == 0.0


def test_parts_of_a_network() -> None:
    facts = model_facts(torch, nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8, 2)))
    assert facts["conv_layers"] == 1 and facts["parameters"] == 8 * 27 + 8 + 18 and facts["modules"] == 4
    assert facts["conv_frac"] == pytest.approx((8 * 27 + 8) / (8 * 27 + 8 + 18), abs=1e-4)
    assert (facts["conv2d_layers"], facts["conv2d_frac"]) == (1, facts["conv_frac"])
    sound = model_facts(torch, nn.Sequential(nn.Conv1d(4, 4, 3), nn.Conv3d(1, 2, 3)))
    assert (sound["conv_layers"], sound["conv2d_layers"], sound["conv2d_frac"]) == (2, 0, 0.0)
    assert model_facts(torch, nn.ReLU())["stepwise_frac"] == 0.0


def test_a_class_is_torchs_or_the_scripts() -> None:
    class Net(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    assert model_facts(torch, nn.Sequential())["class_of_torch"]
    assert not model_facts(torch, Net())["class_of_torch"]


def test_norms_are_torchs_and_those_of_libraries() -> None:
    class LlamaRMSNorm(nn.Module):
        pass

    class NormedBlock(nn.Sequential):
        """Has a norm, is none."""

    net = nn.Sequential(nn.BatchNorm2d(4), NormedBlock(nn.LayerNorm(4), nn.GroupNorm(2, 4)), LlamaRMSNorm(), nn.ReLU())
    assert model_facts(torch, net)["norm_layers"] == 4
