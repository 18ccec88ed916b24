"""Peaks by the names drivers give, and settings that a machine cannot do."""

from __future__ import annotations

import pytest

from hotlap.machine.cpu import Cpu
from hotlap.machine.peaks import KINDS, _table, cpu_peaks, gpu_bandwidth, gpu_peaks, supports
from hotlap.records.machine import Accelerator, Machine


def gpu(name: str, capability: str) -> Accelerator:
    new = float(capability) >= 8.0
    return Accelerator(name, 16 << 30, capability, new, float(capability) != 6.1, new, float(capability) >= 7.0)


def machine(*gpus: Accelerator, flags: tuple[str, ...] = (), compiler: str | None = None) -> Machine:
    return Machine(
        "Linux", "Some CPU", 4, 1 << 34, 1 << 33, list(flags), "3.11", "2.13.0", list(gpus), compiler=compiler
    )


@pytest.mark.parametrize(
    ("name", "dtype", "tflops"),
    [
        ("Tesla P100-PCIE-16GB", "fp16", 18.7),
        ("Tesla V100-SXM2-16GB", "fp16", 125),
        ("Tesla T4", "fp16", 65),
        ("NVIDIA GeForce RTX 2080 Ti", "fp16", 53.8),
        ("NVIDIA GeForce RTX 3090", "bf16", 71),
        ("NVIDIA RTX A5000", "bf16", 111.1),
        ("NVIDIA RTX A6000", "tf32", 77.4),
        ("NVIDIA A100-SXM4-80GB", "tf32", 156),
        ("NVIDIA L4", "bf16", 121),
        ("NVIDIA L40S", "bf16", 362),
        ("NVIDIA GeForce RTX 4090", "bf16", 165.2),
        ("NVIDIA H100 80GB HBM3", "bf16", 989.4),
        ("NVIDIA H100 PCIe", "bf16", 756),
        ("NVIDIA H200", "bf16", 989.4),
        ("NVIDIA B200", "bf16", 2250),
    ],
)
def test_names_that_drivers_give(name: str, dtype: str, tflops: float) -> None:
    found = {p.dtype: p for p in gpu_peaks(name)}
    assert found[dtype].flops_per_s == tflops * 1e12 and found[dtype].source


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GH200 480GB",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "NVIDIA RTX 6000 Ada Generation",
        "NVIDIA GeForce RTX 2080",
        "AMD Instinct MI300X",
    ],
)
def test_a_chip_of_another_speed_is_unknown_rather_than_wrong(name: str) -> None:
    assert gpu_peaks(name) == [] and gpu_bandwidth(name) is None


def test_bandwidth_of_the_same_chip_differs_by_memory() -> None:
    found = [gpu_bandwidth(n) for n in ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe")]
    assert [f[0] for f in found if f] == [1555e9, 2039e9, 1935e9]


def test_every_row_names_its_source_and_old_chips_no_new_types() -> None:
    for row in [*_table()["gpu"], *_table()["cpu"]]:
        assert row["source"], row
    for name in ("Tesla P100-PCIE-16GB", "Tesla V100-PCIE-32GB", "Tesla T4"):
        assert not {"bf16", "tf32"} & {p.dtype for p in gpu_peaks(name)}


def test_cpu_peaks_count_physical_cores_within_what_may_be_used() -> None:
    intel = Cpu("Xeon", "GenuineIntel", 6, 143, ["avx2", "avx512f", "amx_bf16"], physical_cores=4, clock_hz=2e9)
    found = {p.dtype: p.flops_per_s for p in cpu_peaks(intel, cores=8)}
    assert found == {"fp32": 4 * 2e9 * 64, "bf16": 4 * 2e9 * 1024}
    assert cpu_peaks(intel, cores=1)[0].flops_per_s == 2e9 * 64
    zen4 = Cpu("EPYC", "AuthenticAMD", 25, 17, ["avx2", "avx512f", "avx512_bf16"], 2, 3e9)
    assert cpu_peaks(zen4, 2)[0].flops_per_s == 2 * 3e9 * 32
    assert cpu_peaks(Cpu("Neoverse", "ARM", clock_hz=3e9), 2) == []
    assert cpu_peaks(Cpu("Xeon", "GenuineIntel", flags=["avx2"]), 2) == []


@pytest.mark.parametrize(("name", "capability"), [("Tesla T4", "7.5"), ("Tesla V100", "7.0"), ("Tesla P100", "6.0")])
def test_bf16_and_tf32_need_ampere(name: str, capability: str) -> None:
    old = machine(gpu(name, capability))
    assert "8.0" in (supports(old, "bf16") or "") and "8.0" in (supports(old, "tf32") or "")
    assert supports(old, "fp16") is None
    assert (supports(old, "triton") is None) == (capability != "6.0")


def test_the_weakest_of_several_gpus_decides() -> None:
    mixed = machine(gpu("NVIDIA A100", "8.0"), gpu("Tesla T4", "7.5"))
    assert "T4" in (supports(mixed, "bf16") or "")
    assert supports(machine(gpu("NVIDIA A100", "8.0")), "bf16") is None


def test_cpu_settings() -> None:
    plain = machine(flags=("avx2",))
    assert all(supports(plain, what) for what in KINDS)
    able = machine(flags=("avx512_bf16", "avx512_fp16"), compiler="/usr/bin/g++")
    assert [supports(able, what) is None for what in KINDS] == [True, True, False, False, True]
    with pytest.raises(ValueError, match="int3"):
        supports(plain, "int3")
