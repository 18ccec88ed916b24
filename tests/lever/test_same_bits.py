"""Levers that promise the same bits, where it would be easy to break them."""

from __future__ import annotations

from pathlib import Path

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
