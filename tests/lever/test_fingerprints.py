"""Prints of weights: equal where nothing changed, others after any change."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from hotlap.lever.fingerprints import SMALL_BYTES, WeightsPrint


@pytest.fixture
def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.BatchNorm2d(5), nn.Linear(131, 141), nn.Linear(3, 1))


def _last_of_large(net: nn.Sequential) -> None:
    net[3].weight.data.view(-1)[-1] += 1e-3  # 131 * 141 numbers: the last one is no half of a pair


def _first_of_large(net: nn.Sequential) -> None:
    net[3].weight.data.view(-1)[0] += 1e-3


def _swapped(net: nn.Sequential) -> None:
    one, other = net[1].running_mean, net[2].running_mean
    kept = one.clone()
    one.copy_(other)
    other.copy_(kept)


def _counted(net: nn.Sequential) -> None:
    net[1].num_batches_tracked += 1


def _elsewhere(net: nn.Sequential) -> None:
    net[0].weight.data = net[0].weight.data.clone()


CHANGES = [_last_of_large, _first_of_large, _swapped, _counted, _elsewhere]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
def test_a_change_gives_another_print(
    network: nn.Sequential, change: Callable[[nn.Sequential], None], memory_format: torch.memory_format
) -> None:
    network.to(memory_format=memory_format)
    network[1].running_mean.copy_(torch.arange(5.0))
    assert network[3].weight.numel() * 4 > SMALL_BYTES and network[3].weight.numel() % 2 == 1
    prints = WeightsPrint()
    before = prints.take(network)
    assert prints.take(network) == before == WeightsPrint().take(network)
    change(network)
    assert prints.take(network) != before
    assert prints.take(network) == WeightsPrint().take(network), "what it keeps shows the weights of now"


def test_weights_that_begin_within_a_word_are_read_whole() -> None:
    buffer = torch.arange(20_003.0)
    network = nn.Linear(1, 1, bias=False)
    network.weight = nn.Parameter(buffer[1:20_002].reshape(1, -1))
    prints = WeightsPrint()
    before = prints.take(network)
    for at in (1, 2, 10_000, 20_001):
        buffer[at] += 0.5
        assert prints.take(network) != before
        buffer[at] -= 0.5
    buffer[0] += 1.0
    assert prints.take(network) == before


def test_weights_that_do_not_lie_in_one_piece_are_read_anew(network: nn.Sequential) -> None:
    network[4].weight = nn.Parameter(torch.arange(12.0).reshape(3, 4).t()[:1].t())
    assert not network[4].weight.is_contiguous()
    prints = WeightsPrint()
    before = prints.take(network)
    network[4].weight.data[1, 0] += 1
    assert prints.take(network) != before
