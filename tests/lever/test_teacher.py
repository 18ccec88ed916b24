"""A frozen network under teacher-inference: what is treated, and what is left alone."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hotlap.lever.catalog import teacher_inference
from hotlap.lever.contract import Refusal
from hotlap.testing.lever_kit import findings_of, machine_of
from hotlap.testing.lever_target import LocalTarget

SETTING = {"dtype": "bf16", "channels_last": True}


@pytest.fixture
def target(tmp_path: Path) -> Iterator[LocalTarget]:
    with LocalTarget(str(tmp_path)) as target:
        teacher_inference.apply(target, SETTING)
        yield target
    assert target.problems == []


class Watched(nn.Module):
    """Remembers how its forward ran."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.seen: list[Any] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.conv(x)
        last = x.is_contiguous(memory_format=torch.channels_last)
        self.seen.append((torch.is_grad_enabled(), out.dtype, last))
        return out


@pytest.fixture
def teacher() -> Watched:
    return Watched().requires_grad_(False).eval()


IMAGES = torch.randn(2, 3, 8, 8)
PLAIN = (True, torch.float32, False)


def settled(teacher: Watched) -> None:
    """The call that shows what is trained inside, and one as all others will be."""
    for _ in range(2):
        teacher(IMAGES)
    assert teacher.seen[-1][:2] == (False, torch.bfloat16)


def test_a_teacher_runs_in_bf16_without_a_graph_and_gives_fp32(target: LocalTarget, teacher: Watched) -> None:
    teacher(IMAGES)
    assert teacher.seen == [PLAIN], "the first call shows what is trained inside: it is the script's own"
    out = teacher(IMAGES)
    assert teacher.seen == [PLAIN, (False, torch.bfloat16, True)]
    assert out.dtype is torch.float32 and not out.requires_grad and torch.is_grad_enabled()
    assert not torch.is_autocast_enabled("cpu")
    student = nn.Conv2d(3, 4, 3)
    nn.functional.mse_loss(student(IMAGES), out).backward()
    assert target.changes == 1


def test_a_frozen_part_of_a_trained_model(target: LocalTarget, teacher: Watched) -> None:
    model = nn.Sequential(nn.Sequential(teacher), nn.Flatten(), nn.Linear(144, 2))
    for _ in range(2):
        model(IMAGES).sum().backward()
    assert teacher.seen == [PLAIN, (False, torch.bfloat16, True)] and target.changes == 1


def test_one_that_the_script_runs_without_gradients_is_treated_at_once(target: LocalTarget, teacher: Watched) -> None:
    with torch.no_grad():
        teacher(IMAGES)
    assert teacher.seen == [(False, torch.bfloat16, True)] and target.changes == 1


def test_gradients_that_pass_through_it_are_left_alone(target: LocalTarget, teacher: Watched) -> None:
    settled(teacher)
    images = IMAGES.clone().requires_grad_()
    teacher(images).sum().backward()
    assert images.grad is not None and teacher.seen[-1][:2] == (True, torch.float32)


def test_a_module_that_is_unfrozen_trains(target: LocalTarget, teacher: Watched) -> None:
    settled(teacher)
    teacher.requires_grad_(True)
    teacher(IMAGES).sum().backward()
    assert teacher.conv.weight.grad is not None and teacher.seen[-1][:2] == (True, torch.float32)


def test_the_layout_stays_where_an_optimizer_holds_the_weights(target: LocalTarget, teacher: Watched) -> None:
    optimizer = torch.optim.SGD(teacher.parameters(), lr=0.1)
    with torch.no_grad():
        teacher(IMAGES)
    assert teacher.seen == [(False, torch.bfloat16, False)] and optimizer is not None


def test_the_layout_stays_where_the_weights_are_views_of_one_buffer(target: LocalTarget, teacher: Watched) -> None:
    """A teacher that follows its student by one update of that buffer."""
    flat = torch.cat([p.data.flatten() for p in teacher.parameters()])
    parts = flat.split([p.numel() for p in teacher.parameters()])
    for p, part in zip(teacher.parameters(), parts, strict=True):
        p.data = part.view_as(p)
    settled(teacher)
    flat.zero_()
    assert not teacher.conv.weight.any() and teacher.seen[-1] == (False, torch.bfloat16, False)


def test_an_exception_leaves_nothing_open(target: LocalTarget, teacher: Watched) -> None:
    settled(teacher)
    with pytest.raises(RuntimeError):
        teacher(torch.randn(2, 5, 8, 8))
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


def test_copies_and_pickles_are_plain(tmp_path: Path, teacher: Watched) -> None:
    with LocalTarget(str(tmp_path)) as target:
        teacher_inference.apply(target, SETTING)
        settled(teacher)
        copies = [copy.deepcopy(teacher), pickle.loads(pickle.dumps(teacher))]
        torch.save(teacher, io.BytesIO())
    for other in copies:
        other(IMAGES)
        assert other.seen[-1] == (True, torch.float32, False)


def test_it_is_gone_afterwards(tmp_path: Path, teacher: Watched) -> None:
    with LocalTarget(str(tmp_path)) as target:
        teacher_inference.apply(target, SETTING)
        settled(teacher)
    teacher(IMAGES)
    assert teacher.seen[-1] == (True, torch.float32, False) and teacher.conv.weight.is_contiguous()


def test_refusals() -> None:
    for told, ranks in (({"frozen": False}, 2), ({"asked": True}, 1)):
        findings = findings_of("frozen-subnetwork")
        findings = replace(findings, script=replace(findings.script, world_size=ranks))
        findings.findings[0].evidence.update(told)
        found = teacher_inference.settings(findings.findings[0], findings, machine_of())
        assert isinstance(found, Refusal)
    findings = findings_of("frozen-subnetwork")
    plain = teacher_inference.settings(findings.findings[0], findings, machine_of(cpu_flags=["avx2"]))
    assert plain == [{"dtype": "fp32", "channels_last": True}]
    assert teacher_inference.check(SETTING, machine_of(cpu_flags=["avx2"]))


def test_one_that_nobody_froze_is_offered_even_without_a_faster_type() -> None:
    findings = findings_of("frozen-subnetwork")
    findings.findings[0].evidence.update({"frozen": False, "conv_layers": 0})
    found = teacher_inference.settings(findings.findings[0], findings, machine_of(cpu_flags=["avx2"]))
    assert found == [{"dtype": "fp32", "channels_last": False}]


def test_replicas_of_data_parallel_run_as_they_are(tmp_path: Path) -> None:
    with LocalTarget(str(tmp_path)) as target:
        teacher_inference.apply(target, SETTING)
        teacher = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).requires_grad_(False)
        teacher(torch.ones(2, 3))
        replica = teacher[0].__class__.__new__(nn.Linear)
        replica.__dict__ = {**teacher[0].__dict__, "_parameters": {}, "_forward_hooks": teacher._forward_hooks}
        replica._forward_pre_hooks = teacher._forward_pre_hooks
        replica._forward_hooks_with_kwargs = teacher._forward_hooks_with_kwargs
        replica._forward_hooks_always_called = teacher._forward_hooks_always_called
        replica._forward_pre_hooks_with_kwargs = teacher._forward_pre_hooks_with_kwargs
        replica.weight, replica.bias = teacher[0].weight.data.clone().requires_grad_(), None
        assert replica(torch.ones(2, 3)).requires_grad
        trunk = nn.Sequential(nn.Linear(3, 3), nn.ReLU()).requires_grad_(False)
        model = nn.Sequential(nn.DataParallel(trunk), nn.Linear(3, 3))
        model(torch.ones(2, 3))
        assert not trunk._forward_pre_hooks
