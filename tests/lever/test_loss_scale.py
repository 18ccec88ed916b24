"""Scaling of the loss for fp16: whatever a backward reaches, its gradient is the true one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

from hotlap.lever.loss_scale import LossScale, _size
from hotlap.testing.lever_target import LocalTarget

X = torch.linspace(-1, 1, 12).view(4, 3)


@pytest.fixture
def scale(tmp_path: Path) -> Iterator[LossScale]:
    with LocalTarget(str(tmp_path)) as target:
        scale = LossScale(target)
        target.around_backward(scale.backward)
        target.around_step(scale.step)
        yield scale
    assert target.problems == []


def gradients(model: nn.Module, loss: Any, *more: torch.Tensor) -> list[torch.Tensor]:
    loss.backward()
    found = [t.grad for t in (*model.parameters(), *more) if t.grad is not None]
    for t in (*model.parameters(), *more):
        t.grad = None
    return found


def test_what_is_unfrozen_later(scale: LossScale) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    model[0].requires_grad_(False)
    scale.watch(model)
    assert len(gradients(model, model(X).mean())) == 2
    model.requires_grad_(True)
    wanted = [g.detach() for g in torch.autograd.grad(model(X).mean(), list(model.parameters()))]
    found = gradients(model, model(X).mean())
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_parameters_of_no_module_and_inputs(scale: LossScale) -> None:
    model, sigma, image = nn.Linear(3, 1), nn.Parameter(torch.ones(())), X.clone().requires_grad_()
    scale.watch(model)
    for _ in range(2):
        *_, of_sigma, of_image = gradients(model, (model(image) * sigma).mean(), sigma, image)
        assert torch.allclose(of_sigma, model(X).mean()) and torch.allclose(of_image, model.weight / 4)
    assert not image._backward_hooks and sigma._backward_hooks, "an input is let go with its step"


def test_the_scripts_own_hook_sees_the_true_gradient(scale: LossScale) -> None:
    model = nn.Linear(3, 1)
    seen: list[float] = []
    model.bias.register_hook(lambda grad: seen.append(grad.item()))
    scale.watch(model)
    model(X).mean().backward()
    assert seen == [1.0]


def test_a_backward_inside_of_the_backward(scale: LossScale) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    model[1].requires_grad_(False)
    scale.watch(model)
    model(X).mean().backward()
    model.requires_grad_(True)
    image = X.clone().requires_grad_()
    real: Any = torch.autograd.backward
    found = gradients(model, checkpoint(model, image, use_reentrant=True).mean(), image)
    assert torch.equal(found[-2], torch.ones(1)) and torch.allclose(found[-1], (model[1].weight @ model[0].weight) / 4)
    assert real is torch.autograd.backward


def test_gradients_of_what_is_computed_are_asked_for(scale: LossScale) -> None:
    model = nn.Linear(3, 1)
    scale.watch(model)
    out = model(X)
    out.retain_grad()
    out.mean().backward(inputs=[out])
    assert out.grad is not None and torch.equal(out.grad, torch.full((4, 1), 0.25))


@pytest.mark.parametrize("make", [torch.optim.Adam, lambda p: torch.optim.Adam(p, fused=True), torch.optim.SGD])
def test_a_step_of_infinite_gradients_updates_nothing_and_is_a_step(scale: LossScale, make: Any) -> None:
    model = nn.Linear(3, 1)
    optimizer = make(model.parameters())
    seen: list[int] = []
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    before = [p.detach().clone() for p in model.parameters()]
    for number, good in enumerate((False, True), 1):
        model(X).mean().backward()
        assert model.weight.grad is not None
        if not good:
            model.weight.grad[0, 0] = torch.inf
        optimizer.step()
        same = all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))
        assert len(seen) == number and same == (not good) and model.weight.grad is not None
        optimizer.zero_grad()
    assert scale.scale == 32768.0


@pytest.mark.parametrize("name", [None, "closure"])
@pytest.mark.parametrize("make", [torch.optim.Adam, lambda p: torch.optim.Adam(p, fused=True), torch.optim.SGD])
def test_a_closures_infinite_gradients_update_nothing(scale: LossScale, make: Any, name: str | None) -> None:
    model = nn.Linear(3, 1)
    optimizer = make(model.parameters())
    seen: list[float] = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss: Any = model(X).square().mean()
        loss.backward()
        if len(seen) < 2:
            model.weight.grad[0, 0] = torch.inf  # type: ignore[index]
        seen.append(loss.item())
        return loss  # type: ignore[no-any-return]

    for number in range(1, 5):
        before = [p.detach().clone() for p in model.parameters()]
        loss = optimizer.step(closure) if name is None else optimizer.step(**{name: closure})
        same = all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))
        assert len(seen) == number and loss.item() == seen[-1] and same == (number < 3)
        assert model.weight.grad is not None, "the script finds the gradients that it computed"
    assert scale.scale == 65536 / 4


class Climbing(torch.optim.SGD):
    """Takes the gradients of a point nearby, which the closure computes."""

    def step(self, closure: Any = None) -> Any:
        closure()
        return super().step(closure)


@pytest.mark.parametrize("kind", [torch.optim.LBFGS, Climbing])
def test_fp16_gives_up_where_gradients_are_computed_several_times_in_a_step(tmp_path: Path, kind: Any) -> None:
    model = nn.Linear(3, 1)
    with LocalTarget(str(tmp_path)) as target:
        target.around_step(LossScale(target).step)
        optimizer = kind(model.parameters(), lr=0.1)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss: Any = model(X).square().mean()
            loss.backward()
            return loss  # type: ignore[no-any-return]

        before = model.weight.detach().clone()
        assert optimizer.step(closure) > 0 and not torch.equal(model.weight, before)
    assert len(target.problems) == 1 and kind.__name__ in target.problems[0]


def test_an_error_of_looking_at_the_gradients_is_not_the_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(grads: Any) -> Any:
        raise RuntimeError("no such kernel")

    monkeypatch.setattr("hotlap.lever.loss_scale._size", broken)
    weight = nn.Parameter(torch.ones(1))
    with LocalTarget(str(tmp_path)) as target:
        target.around_step(LossScale(target).step)
        weight.grad = torch.ones(1)
        torch.optim.SGD([weight], lr=1.0).step(lambda: 1.0)
    assert weight.item() == 0 and target.problems == ["failed: RuntimeError: no such kernel"]


def test_an_optimizer_of_the_scripts_own_is_not_asked_to_step_without_gradients(scale: LossScale) -> None:
    class Own(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            asked.append([p.grad.shape for group in self.param_groups for p in group["params"]])

    asked: list[Any] = []
    model = nn.Linear(3, 1)
    optimizer = Own(model.parameters(), lr=0.1)
    for value in (torch.nan, 1.0):
        model(X).mean().backward()
        assert model.weight.grad is not None
        model.weight.grad[0, 0] = value
        optimizer.step()
    assert len(asked) == 1


def test_gradients_may_lie_on_two_devices() -> None:
    with FakeTensorMode():
        assert _size([torch.ones(3, device=f"cuda:{k}") for k in range(2)]).device == torch.device("cuda", 0)
    assert _size([torch.tensor([3.0, 4.0]), torch.ones(1)]).item() == 6.0
