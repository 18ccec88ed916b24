"""What old GPUs cannot do is refused with the reason, in the search and in a hand-edited plan; made-up machines."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from hotlap.lever.catalog import autocast, compile_model, cudnn_benchmark, teacher_inference, tf32
from hotlap.lever.contract import Refusal
from hotlap.machine.ask_torch import accelerators
from hotlap.records.codec import decode
from hotlap.records.findings import Findings
from hotlap.records.machine import Accelerator, Machine
from hotlap.testing.lever_kit import findings_of, machine_of


class FakeTorch:
    """What ``ask_torch`` asks of torch, of one GPU."""

    def __init__(self, name: str, capability: str) -> None:
        major, _, minor = capability.partition(".")
        facts = type("Facts", (), {"name": name, "total_memory": 16 << 30, "major": int(major), "minor": int(minor)})
        self.cuda: Any = self
        self.version = type("Version", (), {"hip": None})
        self.get_device_properties = lambda index: facts

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1


def gpu(name: str, capability: str, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with that GPU and the triton package, on a host that has AVX2 alone."""
    monkeypatch.setattr("hotlap.machine.ask_torch.find_spec", lambda name: object())
    found = decode(list[Accelerator], accelerators(FakeTorch(name, capability)), "accelerators")
    return machine_of(accelerators=found, cpu_flags=["avx2"])


def on(machine: Machine, *causes: str) -> Findings:
    findings = findings_of(*causes)
    script = dataclasses.replace(findings.script, device=machine.accelerators[0].name)
    return dataclasses.replace(findings, script=script)


def offered(lever: Any, machine: Machine, **evidence: Any) -> Any:
    findings = on(machine, *lever.TREATS)
    finding = lever.evidence(findings)
    finding.evidence.update(evidence)
    return lever.settings(finding, findings, machine)


@pytest.mark.parametrize(
    ("name", "capability", "bf16", "has_tf32", "triton"),
    [
        ("Tesla P100-PCIE-16GB", "6.0", False, False, False),
        ("Tesla V100-SXM2-16GB", "7.0", False, False, True),
        ("Tesla T4", "7.5", False, False, True),
        ("NVIDIA GeForce RTX 2080 Ti", "7.5", False, False, True),
        ("NVIDIA A100-SXM4-40GB", "8.0", True, True, True),
        ("NVIDIA L4", "8.9", True, True, True),
        ("NVIDIA H200", "9.0", True, True, True),
        ("NVIDIA B200", "10.0", True, True, True),
    ],
)
def test_what_each_generation_can_do(
    name: str, capability: str, bf16: bool, has_tf32: bool, triton: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = gpu(name, capability, monkeypatch)
    assert offered(autocast, machine) == [{"dtype": "bf16" if bf16 else "fp16"}]
    assert (autocast.check({"dtype": "bf16"}, machine) is None) is bf16
    assert offered(teacher_inference, machine)[0]["dtype"] == ("bf16" if bf16 else "fp16")
    assert (teacher_inference.check({"dtype": "bf16", "channels_last": True}, machine) is None) is bf16

    found = offered(tf32, machine)
    assert (found == [{}]) is has_tf32 and (tf32.check({}, machine) is None) is has_tf32
    if not has_tf32:
        assert name in found.reason and capability in found.reason

    found = offered(compile_model, machine)
    assert (found == [{}, {"mode": "reduce-overhead"}]) is triton
    assert (compile_model.check({"mode": "reduce-overhead"}, machine) is None) is triton
    if not triton:
        assert "Triton" in found.reason and capability in (compile_model.check({}, machine) or "")


def test_without_a_gpu() -> None:
    plain = machine_of()
    assert "GPU" in (tf32.check({}, plain) or "") and "GPU" in (cudnn_benchmark.check({}, plain) or "")
    assert "CUDA graphs" in (compile_model.check({"mode": "reduce-overhead"}, plain) or "")
    assert compile_model.check({"dynamic": True}, plain) is None and compile_model.check({"mode": "x"}, plain)
    assert tf32.evidence(findings_of("precision")) is None, "on a CPU it is not even mentioned"


def test_cudnn_tries_algorithms_out_for_one_shape_only(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = gpu("NVIDIA H200", "9.0", monkeypatch)
    assert offered(cudnn_benchmark, machine, shapes=1) == [{}]
    varying = offered(cudnn_benchmark, machine, shapes=4)
    assert isinstance(varying, Refusal) and "4 shapes" in varying.reason
