"""Autocast to a type that the machine lacks is left out; to any other it stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from hotlap.lever.contract import Refusal
from hotlap.lever.registry import lever
from hotlap.records.machine import Accelerator
from hotlap.testing.lever_kit import findings_of, machine_of
from hotlap.testing.lever_target import LocalTarget

A = torch.ones(2, 2)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[LocalTarget]:
    with LocalTarget(str(tmp_path)) as target:
        lever("autocast-off").apply(target, {"dtype": "bf16", "device": "cpu"})
        yield target


def test_a_region_of_that_type_computes_in_fp32(target: LocalTarget) -> None:
    region = torch.autocast("cpu", dtype=torch.bfloat16)
    assert target.changes == 0
    for _ in range(2):  # one object, entered again and again
        with region:
            assert (A @ A).dtype is torch.float32 and not torch.is_autocast_enabled("cpu")
    assert target.changes == 1

    @torch.amp.autocast("cpu", dtype=torch.bfloat16)
    def decorated() -> torch.Tensor:
        return A @ A

    assert decorated().dtype is torch.float32


def test_afterwards_it_is_what_it_was(tmp_path: Path) -> None:
    region = torch.autocast("cpu", dtype=torch.bfloat16)
    with LocalTarget(str(tmp_path)) as target:
        lever("autocast-off").apply(target, {"dtype": "bf16", "device": "cpu"})
        with region:
            assert (A @ A).dtype is torch.float32
    with region:
        assert (A @ A).dtype is torch.bfloat16


def test_other_regions_stay(target: LocalTarget) -> None:
    with torch.autocast("cpu", dtype=torch.float16):
        assert (A @ A).dtype is torch.float16
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert (A @ A).dtype is torch.float32
        assert (A @ A).dtype is torch.float16
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
        assert (A @ A).dtype is torch.float32
    with LocalTarget(target.scratch) as other:
        lever("autocast-off").apply(other, {"dtype": "fp16", "device": "cuda"})
        with torch.autocast("cpu", dtype=torch.float16):
            assert (A @ A).dtype is torch.float16 and other.changes == 0, "it is for regions on the GPU"
    assert target.changes == 1, "one that is off already is none"


def test_what_is_checkpointed_is_computed_again_alike(target: LocalTarget) -> None:
    from torch.utils.checkpoint import checkpoint

    seen = []

    def part(x: torch.Tensor) -> torch.Tensor:
        seen.append((x @ A).dtype)
        return (x @ A).exp()

    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = checkpoint(part, torch.ones(2, 2, requires_grad=True), use_reentrant=False)
    out.sum().backward()
    assert seen == [torch.float32, torch.float32]


def test_settings() -> None:
    found = lever("autocast-off")
    findings = findings_of("emulated-dtype")
    finding = found.evidence(findings)
    assert finding is not None
    assert found.settings(finding, findings, machine_of()) == [{"dtype": "fp16", "device": "cpu"}]
    finding.evidence.update(autocast=False)  # as of weights in bf16, whatever regions there are
    refused = found.settings(finding, findings, machine_of())
    assert isinstance(refused, Refusal) and "float32" in refused.reason


def test_a_plan_is_told_on_a_machine_that_has_the_type() -> None:
    check, bf16 = lever("autocast-off").check, {"dtype": "bf16", "device": "cpu"}
    assert check(bf16, machine_of(cpu_flags=["avx2"])) is None
    assert "in hardware" in (check(bf16, machine_of()) or "")
    t4 = Accelerator("Tesla T4", 15 << 30, "7.5", False, True, False, True)
    assert check({"dtype": "bf16", "device": "cuda"}, machine_of(accelerators=[t4])) is None
    assert check(bf16, machine_of(accelerators=[t4], cpu_flags=["avx2"])) is None, "a training on the CPU beside it"
    assert "in hardware" in (check({"dtype": "fp16", "device": "cuda"}, machine_of(accelerators=[t4])) or "")


def test_advice_where_the_line_makes_no_region() -> None:
    found = lever("autocast-off")
    finding = found.evidence(findings_of("emulated-dtype"))
    assert finding is not None
    (edit,) = found.edits(finding, {"dtype": "fp16", "device": "cpu"})
    assert edit.kind == "advice" and "enabled=False" in edit.advice
