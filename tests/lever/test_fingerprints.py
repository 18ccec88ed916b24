"""Prints of weights: equal where nothing changed, others after any change."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from hotlap.lever.fingerprints import SMALL_BYTES, TURNS, WeightsPrint, WeightsWatch


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


def held(net: nn.Module) -> list[torch.Tensor]:
    return [*net.parameters(), *net.buffers()]


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
    before = prints.take(held(network))
    assert prints.take(held(network)) == before == WeightsPrint().take(held(network))
    change(network)
    assert prints.take(held(network)) != before
    assert prints.take(held(network)) == WeightsPrint().take(held(network)), "what it keeps shows the weights of now"


def test_weights_that_begin_within_a_word_are_read_whole() -> None:
    buffer = torch.arange(20_003.0)
    network = nn.Linear(1, 1, bias=False)
    network.weight = nn.Parameter(buffer[1:20_002].reshape(1, -1))
    prints = WeightsPrint()
    before = prints.take(held(network))
    for at in (1, 2, 10_000, 20_001):
        buffer[at] += 0.5
        assert prints.take(held(network)) != before
        buffer[at] -= 0.5
    buffer[0] += 1.0
    assert prints.take(held(network)) == before


def test_weights_that_do_not_lie_in_one_piece_are_read_anew(network: nn.Sequential) -> None:
    network[4].weight = nn.Parameter(torch.arange(12.0).reshape(3, 4).t()[:1].t())
    assert not network[4].weight.is_contiguous()
    prints = WeightsPrint()
    before = prints.take(held(network))
    network[4].weight.data[1, 0] += 1
    assert prints.take(held(network)) != before


@pytest.fixture
def wide() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(131, 141) for _ in range(2 * TURNS)), nn.BatchNorm1d(141))


def _average(net: nn.Sequential) -> None:
    for p in net.parameters():
        p.data.mul_(0.9).add_(0.01)


def _optimizer(net: nn.Sequential) -> None:
    with torch.no_grad():
        net[5].weight[3, 3] += 1e-3


def _loaded(net: nn.Sequential) -> None:
    net[7].load_state_dict({k: v + 1 for k, v in net[7].state_dict().items()})


def _replaced(net: nn.Sequential) -> None:
    net[2].weight.data = net[2].weight.data + 1


def _one_behind_torchs_back(net: nn.Sequential) -> None:
    net[11].weight.data[3, 3] += 1e-3


def _one_of_the_small(net: nn.Sequential) -> None:
    net[-1].running_mean.numpy()[7] += 1e-3


@pytest.mark.parametrize(
    ("change", "looks"),
    [
        *((change, 1) for change in (_average, _optimizer, _loaded, _replaced)),
        *((change, TURNS) for change in (_one_behind_torchs_back, _one_of_the_small)),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_watch_sees_every_change(wide: nn.Sequential, change: Callable[[nn.Sequential], None], looks: int) -> None:
    for before in range(TURNS):  # whichever parts come next
        watch, network = WeightsWatch(), copy.deepcopy(wide)
        assert not any(watch.changed(held(network)) for _ in range(1 + before))
        change(network)
        assert any(watch.changed(held(network)) for _ in range(looks))


def test_the_same_numbers_written_again_are_no_change(wide: nn.Sequential) -> None:
    watch = WeightsWatch()
    for _ in range(2 * TURNS):
        assert not watch.changed(held(wide))
        wide[-1].running_mean.copy_(wide[-1].running_mean.clone())  # as DistributedDataParallel does with its buffers


def test_weights_of_which_torch_counts_no_changes_are_read_whole() -> None:
    with torch.inference_mode():
        network = nn.Sequential(*(nn.Linear(131, 141) for _ in range(2 * TURNS)))
    watch = WeightsWatch()
    assert not watch.changed(held(network)) and not watch.changed(held(network))
    network[11].weight.data.numpy()[3, 3] += 1e-3
    assert watch.changed(held(network))


def test_a_network_without_weights_does_not_change() -> None:
    watch = WeightsWatch()
    assert not any(watch.changed(held(nn.Flatten())) for _ in range(3))
