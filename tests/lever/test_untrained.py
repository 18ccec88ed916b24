"""A teacher that nobody froze: frozen where nobody can tell but by the time, left alone everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from hotlap.lever.catalog import teacher_inference
from hotlap.lever.untrained import untrained_networks
from hotlap.testing.lever_target import LocalTarget

SETTING = {"dtype": "fp32", "channels_last": False}
X = torch.linspace(-1, 1, 48).view(8, 6)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.student = nn.Linear(6, 3)
        self.teacher = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
        self.graphs: list[bool] = []

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wanted = self.teacher(x)
        self.graphs.append(wanted.requires_grad)
        return self.student(x), wanted


Touch = Callable[[Pair], None]


def train(
    pair: Pair, between: Touch = lambda pair: None, after: Touch = lambda pair: None, steps: int = 4
) -> list[float]:
    """``between`` backward and step, ``after`` the step."""
    optimizer = torch.optim.SGD(pair.student.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        found, wanted = pair(X)
        loss = nn.functional.mse_loss(found, wanted)
        optimizer.zero_grad()
        loss.backward()
        between(pair)
        optimizer.step()
        after(pair)
        losses.append(loss.item())
    return losses


def made() -> Pair:
    torch.manual_seed(0)
    return Pair()


def treated(folder: Path, between: Touch = lambda pair: None, after: Touch = lambda pair: None) -> tuple[Pair, int]:
    """What is left of it after four steps; losses are those of the bare training."""
    expected = train(made(), between, after)
    with LocalTarget(str(folder)) as target:
        teacher_inference.apply(target, SETTING)
        pair = made()
        assert train(pair, between, after) == expected
    assert not target.problems and all(p.requires_grad for p in pair.parameters())
    return pair, target.changes


def test_it_records_no_graph_from_the_second_step_on(tmp_path: Path) -> None:
    pair, changes = treated(tmp_path)
    assert pair.graphs == [True, True, False, False] and changes > 0


def test_weights_that_somebody_updates_are_left(tmp_path: Path) -> None:
    def by_hand(pair: Pair) -> None:
        with torch.no_grad():
            for p in pair.teacher.parameters():
                assert p.grad is not None
                p -= 0.01 * p.grad

    pair, changes = treated(tmp_path, after=by_hand)
    assert pair.graphs == [True] * 4 and changes == 0


def test_weights_that_are_updated_through_data_are_left(tmp_path: Path) -> None:
    def by_hand(pair: Pair) -> None:
        for p in pair.teacher.parameters():
            assert p.grad is not None
            p.data.add_(p.grad, alpha=-0.01)

    pair, changes = treated(tmp_path, after=by_hand)
    assert pair.graphs == [True] * 4 and changes == 0


def test_an_update_that_comes_later_gets_its_gradients_back(tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        teacher_inference.apply(target, SETTING)
        pair, calls = made(), []

        def by_hand(pair: Pair) -> None:
            calls.append(True)
            for p in pair.teacher.parameters():
                p.data.add_(0.01 * (len(calls) > 2))

        train(pair, after=by_hand)
        pair(X)
        assert pair.graphs == [True, True, False, False, True]
        assert all(p.requires_grad for p in pair.teacher.parameters())


def test_running_statistics_are_no_weights(tmp_path: Path) -> None:
    def with_norm() -> Pair:
        pair = made()
        pair.teacher.append(nn.BatchNorm1d(3))
        return pair

    with LocalTarget(str(tmp_path)) as target:
        teacher_inference.apply(target, SETTING)
        pair = with_norm()
        train(pair)
        assert pair.graphs == [True, True, False, False]


def test_16_bit_weights_may_have_copies_that_are_trained(tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        teacher_inference.apply(target, SETTING)
        pair = made()
        pair.to(torch.bfloat16)
        masters = [p.detach().float() for p in pair.parameters()]
        optimizer = torch.optim.SGD([*pair.student.parameters(), *masters], lr=0.0)
        for _ in range(3):
            nn.functional.mse_loss(*pair(X.bfloat16())).backward()
            optimizer.step()
        assert pair.graphs == [True] * 3 and target.changes == 0


def test_gradients_that_are_clipped_together_are_left(tmp_path: Path) -> None:
    def clip(pair: Pair) -> None:
        nn.utils.clip_grad_norm_(pair.parameters(), 0.01)

    pair, changes = treated(tmp_path, between=clip)
    assert pair.graphs == [True] * 4 and changes == 0


def test_an_optimizer_that_comes_later_trains_it(tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        teacher_inference.apply(target, SETTING)
        pair = made()
        train(pair)
        assert not any(p.requires_grad for p in pair.teacher.parameters())
        later = torch.optim.SGD(pair.parameters(), lr=0.1)
        before = pair.teacher[0].weight.clone()
        pair(X)[1].sum().backward()
        later.step()
        assert not torch.equal(pair.teacher[0].weight, before)


def test_what_an_optimizer_holds_or_no_backward_reaches_is_no_such_network() -> None:
    pair, idle, alone = made(), nn.Linear(2, 2), nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(pair.student.parameters(), lr=0.1)
    nn.functional.mse_loss(*pair(X)).backward()
    alone(X).sum().backward()
    found = {id(module) for module in untrained_networks()}
    assert {id(pair.teacher), id(alone)} <= found
    assert not found & {id(pair), id(pair.student), id(idle), id(alone[0]), id(pair.teacher[0])} and optimizer


def test_a_teacher_beside_the_student(tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        teacher_inference.apply(target, {"dtype": "bf16", "channels_last": False})
        teacher, student = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)), nn.Linear(6, 3)
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        graphs = []
        for _ in range(4):
            wanted = teacher(X)
            graphs.append(wanted.requires_grad)
            nn.functional.mse_loss(student(X), wanted).backward()
            optimizer.step()
        assert graphs == [True, True, False, False] and wanted.dtype is torch.float32
    assert not target.problems


def test_on_several_ranks_nothing_is_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotlap.lever.untrained._several_ranks", lambda: True)
    pair, changes = treated(tmp_path)
    assert pair.graphs == [True] * 4 and changes == 0
