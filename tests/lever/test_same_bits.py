"""Levers that promise the same bits, where it would be easy to break them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import checkpoint

from hotlap.lever.catalog import keep_activations, zero_grad_none
from hotlap.testing.lever_target import LocalTarget


def weights_after_steps_without_a_branch() -> torch.Tensor:
    """One of two layers gets no gradient in every second step; Adam's momentum moves it all the same."""
    torch.manual_seed(0)
    layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.1)
    for step in range(6):
        optimizer.zero_grad(set_to_none=False)
        layers[step % 2](torch.ones(2, 4)).square().mean().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in layers.parameters()])


def test_parameters_without_a_gradient_move_as_with_zeros(tmp_path: Path) -> None:
    expected = weights_after_steps_without_a_branch()
    with LocalTarget(str(tmp_path)) as target:
        zero_grad_none.apply(target, {})
        found = weights_after_steps_without_a_branch()
    assert target.changes == 1 and torch.equal(found, expected)


def in_one_buffer(parameters: list[nn.Parameter]) -> list[torch.Tensor]:
    flat = torch.zeros(sum(p.numel() for p in parameters))
    for p, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
        p.grad = part.view_as(p)
    return [flat]


def in_a_list(parameters: list[nn.Parameter]) -> list[torch.Tensor]:
    for p in parameters:
        p.grad = torch.zeros_like(p)
    return [p.grad for p in parameters if p.grad is not None]


@pytest.mark.parametrize("hold", [in_one_buffer, in_a_list])
def test_gradients_that_the_script_sees_elsewhere_stay_where_they_are(hold: Any, tmp_path: Path) -> None:
    """As where all are clipped, or summed over ranks, by one operation on their buffer."""

    def seen() -> tuple[list[torch.Tensor], bool]:
        torch.manual_seed(0)
        layers = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        optimizer, held = torch.optim.SGD(layers.parameters(), lr=0.1), hold(list(layers.parameters()))
        out = []
        for _ in range(3):
            optimizer.zero_grad(set_to_none=False)
            layers(torch.ones(2, 4)).square().mean().backward()
            out.extend(grad.clone() for grad in held)
            optimizer.step()
        return out, any(bool(grad.any()) for grad in held)

    expected = seen()
    with LocalTarget(str(tmp_path)) as target:
        zero_grad_none.apply(target, {})
        found = seen()
    assert target.changes == 0 and expected[1] and found[1]
    assert all(torch.equal(a, b) for a, b in zip(found[0], expected[0], strict=True))


@pytest.mark.parametrize("inside", [True, False])
def test_with_a_closure_parameters_without_a_gradient_move_as_with_zeros(tmp_path: Path, inside: bool) -> None:
    def weights() -> torch.Tensor:
        torch.manual_seed(0)
        layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        optimizer = torch.optim.Adam(layers.parameters(), lr=0.1)
        for step in range(6):

            def closure(layer: nn.Module = layers[step % 2]) -> torch.Tensor:
                if inside:
                    optimizer.zero_grad(set_to_none=False)
                loss: torch.Tensor = layer(torch.ones(2, 4)).square().mean()
                loss.backward()
                return loss

            if not inside:
                optimizer.zero_grad(set_to_none=False)
            loss: Any = optimizer.step(closure) if step % 3 else optimizer.step(closure=closure)  # type: ignore[call-overload]
            assert loss.item() > 0
        return torch.cat([p.detach().flatten() for p in layers.parameters()])

    expected = weights()
    with LocalTarget(str(tmp_path)) as target:
        zero_grad_none.apply(target, {})
        found = weights()
    assert target.changes == 1 and torch.equal(found, expected)


def test_sparse_gradients_stay_sparse(tmp_path: Path) -> None:
    def weights() -> torch.Tensor:
        torch.manual_seed(0)
        table, layer = nn.Embedding(5, 4, sparse=True), nn.Linear(4, 4)
        own = [*table.parameters(), *layer.parameters()]
        optimizers = torch.optim.SGD(own, lr=0.1, momentum=0.9), torch.optim.SparseAdam(table.parameters(), lr=0.1)
        for step in range(6):
            optimizers[step // 3].zero_grad(set_to_none=False)
            rows = table(torch.tensor([1, step % 5])) if step % 2 == 0 else torch.ones(2, 4)
            layer(rows).square().mean().backward()
            assert table.weight.grad is None or table.weight.grad.is_sparse
            optimizers[step // 3].step()
        return torch.cat([p.detach().flatten() for p in own])

    expected = weights()
    with LocalTarget(str(tmp_path)) as target:
        zero_grad_none.apply(target, {})
        found = weights()
    assert target.changes == 1 and torch.equal(found, expected)


def test_selective_checkpointing_is_the_scripts_own_choice(tmp_path: Path) -> None:
    asked = []

    def contexts() -> tuple[torch.no_grad, torch.no_grad]:
        asked.append(True)
        return torch.enable_grad(), torch.enable_grad()  # type: ignore[return-value]

    x = torch.ones(3, requires_grad=True)
    with LocalTarget(str(tmp_path)) as target:
        keep_activations.apply(target, {})
        checkpoint.checkpoint(torch.sin, x, use_reentrant=False, context_fn=contexts).sum().backward()
        assert asked and target.changes == 0
        checkpoint.checkpoint(torch.sin, x, use_reentrant=False).sum().backward()
        assert target.changes == 1


class Block(nn.Module):
    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), *parts)
        self.how: Callable[..., Any] = lambda x: checkpoint.checkpoint(self.body, x, use_reentrant=False)

    def forward(self, x: torch.Tensor) -> Any:
        return self.how(x)


def through_a_method(block: Block) -> Any:
    return lambda x: checkpoint.checkpoint(block.body.forward, x, use_reentrant=False)


def through_a_closure(block: Block) -> Any:
    def run(*inputs: torch.Tensor) -> Any:
        return block.body(*inputs)

    return lambda x: checkpoint.checkpoint(functools.partial(run), x, use_reentrant=False)


def trained(block: Block, keywords: dict[str, Any] | None = None) -> dict[str, torch.Tensor]:
    if keywords is not None:
        block.how = lambda x: checkpoint.checkpoint(block.body, x, **keywords)
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        block(torch.linspace(-1, 1, 12).view(3, 4)).square().mean().backward()
        optimizer.step()
    return {k: v.detach().clone() for k, v in block.state_dict().items()}


def kept_and_not(tmp_path: Path, make: Callable[[], Block], **keywords: Any) -> tuple[Any, Any, LocalTarget]:
    torch.manual_seed(0)
    expected = trained(make(), keywords or None)
    with LocalTarget(str(tmp_path)) as target:
        keep_activations.apply(target, {})
        torch.manual_seed(0)
        found = trained(make(), keywords or None)
    return found, expected, target


@pytest.mark.parametrize("through", [None, through_a_method, through_a_closure])
def test_what_is_counted_in_both_forwards_stays_checkpointed(tmp_path: Path, through: Any) -> None:
    def make() -> Block:
        block = Block(nn.BatchNorm1d(4))
        block.how = block.how if through is None else through(block)
        return block

    found, expected, target = kept_and_not(tmp_path, make)
    assert target.changes == 0 and "BatchNorm1d" in target.reasons[-1]
    assert all(torch.equal(found[k], expected[k]) for k in expected)
    assert found["body.1.num_batches_tracked"] == 4


@pytest.mark.parametrize("through", [None, through_a_method, through_a_closure])
def test_modules_without_numbers_of_their_own_are_kept(tmp_path: Path, through: Any) -> None:
    def make() -> Block:
        block = Block(nn.LayerNorm(4), nn.Dropout(0.5), nn.BatchNorm1d(4).eval())
        block.body[0].register_buffer("mask", torch.ones(4, dtype=torch.bool))
        block.how = block.how if through is None else through(block)
        return block

    found, expected, target = kept_and_not(tmp_path, make)
    assert target.changes == 1 and all(torch.equal(found[k], expected[k]) for k in expected)


@pytest.mark.parametrize("keywords", [
    {"use_reentrant": False, "preserve_rng_state": False},
    {"use_reentrant": True},
])  # fmt: skip
def test_keywords_by_which_the_second_forward_is_another_one(tmp_path: Path, keywords: dict[str, Any]) -> None:
    if keywords["use_reentrant"]:  # its inside gets no gradient at all: only what comes behind is trained

        def make() -> Block:
            block = Block()
            inner = block.body
            block.body = nn.Sequential(inner, nn.Linear(4, 4))
            inner.forward = lambda x, real=inner.forward: checkpoint.checkpoint(real, x, **keywords)  # type: ignore[method-assign]
            block.how = lambda x: block.body(x)
            return block

        found, expected, target = kept_and_not(tmp_path, make)
    else:
        found, expected, target = kept_and_not(tmp_path, lambda: Block(nn.Dropout(0.5)), **keywords)
    assert target.changes == 0 and all(torch.equal(found[k], expected[k]) for k in expected)


class Counter:
    calls = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.calls


def test_what_cannot_be_seen_stays_checkpointed(tmp_path: Path) -> None:
    count = Counter()
    x = torch.ones(3, requires_grad=True)
    with LocalTarget(str(tmp_path)) as target:
        keep_activations.apply(target, {})
        checkpoint.checkpoint(
            lambda x: count(x).sin(), x, use_reentrant=False, determinism_check="none"
        ).sum().backward()
        assert count.calls == 2 and target.changes == 0 and "Counter" in target.reasons[-1]


def weights_after_steps(zero: Callable[[nn.Module, Any, bool], None]) -> torch.Tensor:
    torch.manual_seed(0)
    layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.1)
    for step in range(6):
        zero(layers, optimizer, True)
        layers[step % 2](torch.ones(2, 4)).square().mean().backward()
        optimizer.step()
        zero(layers, optimizer, False)
    return torch.cat([p.detach().flatten() for p in layers.parameters()])


def before_and_after(layers: nn.Module, optimizer: Any, start: bool) -> None:
    optimizer.zero_grad(set_to_none=False)


def twice(layers: nn.Module, optimizer: Any, start: bool) -> None:
    optimizer.zero_grad(set_to_none=False)
    optimizer.zero_grad(set_to_none=False)


def by_the_optimizer_to_none(layers: nn.Module, optimizer: Any, start: bool) -> None:
    optimizer.zero_grad(set_to_none=start)


def by_the_model_to_none(layers: nn.Module, optimizer: Any, start: bool) -> None:
    if start:
        layers.zero_grad()
    else:
        optimizer.zero_grad(set_to_none=False)


def by_hand(layers: nn.Module, optimizer: Any, start: bool) -> None:
    if start:
        optimizer.zero_grad(set_to_none=False)
    else:
        for p in layers.parameters():
            p.grad = None


@pytest.mark.parametrize("zero", [before_and_after, twice, by_the_optimizer_to_none, by_the_model_to_none, by_hand])
def test_zeroed_at_several_places(tmp_path: Path, zero: Any) -> None:
    expected = weights_after_steps(zero)
    with LocalTarget(str(tmp_path)) as target:
        zero_grad_none.apply(target, {})
        found = weights_after_steps(zero)
    assert torch.equal(found, expected)


class Wrapped(nn.Sequential):
    """A layer whose forward is wrapped by functions that use what nobody knows, as those of transformers are."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self:
            x = part(x)
        return x


def _deprecating(forward: Callable[..., Any], unknown: Any) -> Callable[..., Any]:
    @functools.wraps(forward)
    def call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return forward(self, *args, **kwargs) if unknown is not None else None

    return call


INNER = _deprecating(Wrapped.forward, Path())
Wrapped.forward = _deprecating(INNER, Path())  # type: ignore[method-assign]


@pytest.mark.parametrize(("parts", "changes"), [((nn.ReLU(),), 1), ((nn.ReLU(), nn.BatchNorm1d(4)), 0)])
def test_a_layers_own_forward_given_the_layer_is_as_good_as_bound(
    tmp_path: Path, parts: tuple[nn.Module, ...], changes: int
) -> None:
    layer = Wrapped(nn.Linear(4, 4), *parts)
    x = torch.ones(2, 4, requires_grad=True)
    with LocalTarget(str(tmp_path)) as target:
        keep_activations.apply(target, {})
        stranger = _deprecating(INNER, Path())
        checkpoint.checkpoint(functools.partial(stranger, layer), x, use_reentrant=False)
        assert target.changes == 0, "it is no method of the layer"
        checkpoint.checkpoint(functools.partial(INNER, layer), x, use_reentrant=False)
    assert target.changes == changes
