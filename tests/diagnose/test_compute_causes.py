"""Causes of how compute is written and set up: each loud, and each silent beside a near miss."""

from __future__ import annotations

from typing import Any

import pytest
from diagnose_scripts import COMPUTE, causes, healthy

from hotlap.testing.timelines import TimelineBuilder, cpu_machine

BF16 = cpu_machine(flags=("avx2", "avx512_bf16"))
CALL = ("train.py", 33, "forward", "wanted = self.teacher(x)")


def test_denormals_by_where_they_are() -> None:
    weights = causes(healthy().setting("denormals", weights=0.02, gradients=None, state=0.0))["denormals"]
    assert weights.seconds_per_step == pytest.approx(0.02 * (1 - 1 / 1.98) + 0.0004 * (1 - 1 / 1.12), rel=0.01)
    slow = TimelineBuilder().steps(60, **{**COMPUTE, "optimizer": 0.01})
    assert causes(slow.setting("denormals", weights=0.0, gradients=0.0, state=0.5))["denormals"].phase == "optimizer"
    assert "denormals" not in causes(healthy().setting("denormals", weights=0.0, gradients=0.0001, state=0.0))
    on_device = TimelineBuilder("NVIDIA H200").steps(60, **COMPUTE).setting("denormals", weights=0.5)
    assert "denormals" not in causes(on_device)


def teacher(**value: Any) -> TimelineBuilder:
    usual = {
        "class": "IResNet", "parameters": 1000, "dtype": "float32", "device": "cpu", "conv_layers": 5, "conv_frac": 0.9,
        "calls": 1, "s": 0.004, "training": False, "recorded": False, "asked": False, "frozen": True,
        "autocast": False, "channels_last": False,
    }  # fmt: skip
    return healthy().setting("frozen", CALL, **{**usual, **value})


def test_frozen_subnetwork() -> None:
    found = causes(teacher(), BF16)["frozen-subnetwork"]
    assert found.where[0].line == 33 and found.seconds_per_step == pytest.approx(0.45 * 0.004)
    assert "frozen-subnetwork" not in causes(teacher(s=0.0004), BF16), "too small to matter"
    layout = causes(teacher())["frozen-subnetwork"]
    assert "channels_last" in layout.advice and layout.seconds_per_step == pytest.approx(0.15 * 0.004)
    assert "frozen-subnetwork" not in causes(teacher(conv_frac=0.0)), "no faster type here, and no convolutions"
    assert "frozen-subnetwork" not in causes(teacher(autocast=True, channels_last=True), BF16)
    recorded = causes(teacher(recorded=True, frozen=False), BF16)["frozen-subnetwork"]
    assert recorded.seconds_per_step == pytest.approx(0.45 * 0.004 + 0.01 * 0.4)
    assert "requires_grad_(False)" in recorded.advice


def test_the_time_of_a_network_is_the_median_of_its_steps() -> None:
    builder = teacher(s=0.004)
    for seconds in (0.004, 0.1):
        builder.setting("frozen", CALL, **{**builder.build().setting[-1].value, "s": seconds})
    assert causes(builder, BF16)["frozen-subnetwork"].evidence["network_s"] == 0.004
