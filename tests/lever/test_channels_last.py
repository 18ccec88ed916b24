"""Weights whose place in memory somebody else relies on stay where they are."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hotlap.lever.catalog import channels_last
from hotlap.lever.contract import Refusal
from hotlap.testing.lever_kit import findings_of, machine_of
from hotlap.testing.lever_target import LocalTarget


def shared(model: nn.Module) -> Any:
    model.share_memory()
    return None


def one_buffer(model: nn.Module) -> torch.Tensor:
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    at = 0
    for p in model.parameters():
        p.data = flat[at : at + p.numel()].view_as(p)
        at += p.numel()
    return flat


@pytest.mark.parametrize("put", [shared, one_buffer], ids=lambda f: f.__name__)
def test_weights_that_lie_where_others_look_for_them(put: Any, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 1))
    kept = put(model)
    places = [p.data_ptr() for p in model.parameters()]
    with LocalTarget(str(tmp_path)) as target:
        channels_last.apply(target, {})
        model(torch.randn(2, 3, 8, 8)).sum().backward()
        assert [p.data_ptr() for p in model.parameters()] == places
        assert target.changes == 0 and "memory" in target.reasons[0]
    assert target.problems == [] and (kept is None or kept.data_ptr() == places[0])


def test_weights_of_their_own_are_laid_out(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 1))
    with LocalTarget(str(tmp_path)) as target:
        channels_last.apply(target, {})
        model(torch.randn(2, 3, 8, 8)).sum().backward()
        weight: Any = model[0].weight
        assert weight.is_contiguous(memory_format=torch.channels_last) and target.changes and not target.reasons


@pytest.mark.parametrize("fused", [False, True])
def test_a_state_that_is_loaded_behind_the_first_forward_lies_as_its_weights(fused: bool, tmp_path: Path) -> None:
    """A fused update goes through both side by side: where they lie otherwise it trains wrong weights."""
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))

    def resumed() -> torch.Tensor:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 1))
        before = torch.optim.AdamW(model.parameters(), lr=0.1)
        model(x).sum().backward()
        before.step()
        saved = copy.deepcopy(before.state_dict())
        for state in saved["state"].values():
            factors = torch.linspace(1, 9, state["exp_avg"].numel()).view(state["exp_avg"].shape)
            state["exp_avg"] = state["exp_avg"].contiguous()
            state["exp_avg_sq"] = state["exp_avg_sq"].contiguous() * factors
        for group in saved["param_groups"]:
            group["fused"] = fused
        del before
        model(x)  # the model is complete before its optimizer is
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=fused)
        optimizer.load_state_dict(saved)
        for _ in range(2):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    expected = resumed()
    with LocalTarget(str(tmp_path)) as target:
        channels_last.apply(target, {})
        found = resumed()
    assert target.changes == 1 and torch.allclose(found, expected, atol=1e-5)


def test_convolutions_of_one_dimension_have_no_such_layout() -> None:
    findings = findings_of("memory-format")
    findings.script.model.update({"conv_layers": 8, "conv2d_layers": 0})
    refused = channels_last.settings(findings.findings[0], findings, machine_of())
    assert isinstance(refused, Refusal) and "2-d" in str(refused)
    findings.script.model["conv2d_layers"] = 1
    assert channels_last.settings(findings.findings[0], findings, machine_of()) == [{}]
