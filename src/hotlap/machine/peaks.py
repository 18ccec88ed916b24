"""Peaks of this machine by name (``peaks.toml``), and settings that it cannot do."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from hotlap.machine.cpu import Cpu
from hotlap.records.machine import Accelerator, Machine, Peak

__all__ = ["KINDS", "cpu_peaks", "gpu_bandwidth", "gpu_peaks", "gpu_row", "supports"]

KINDS = ("bf16", "fp16", "tf32", "triton", "compile")
"""What :func:`supports` can be asked about."""
_VARIANTS = {"ti", "super", "laptop", "mobile", "max", "q", "d", "mig", "ada", "blackwell"}
"""Words that make a chip of another speed of a name; a row must name them to match."""


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("hotlap.machine").joinpath("peaks.toml").read_text(encoding="utf-8"))


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", name.lower()))


def gpu_row(name: str) -> dict[str, Any] | None:
    """The row of ``peaks.toml`` whose words are all in the device's name (most words win); ``None``: unknown."""
    words = _words(name)
    fitting = [
        row
        for row in _table()["gpu"]
        if words.issuperset(row["words"]) and not (words & _VARIANTS).difference(row["words"])
    ]
    return max(fitting, key=lambda row: len(row["words"]), default=None)


def gpu_peaks(name: str) -> list[Peak]:
    """Dense peaks of a GPU by the name that its driver gives; empty when it is not in the table."""
    row = gpu_row(name)
    if row is None:
        return []
    return [Peak(dtype, float(tera) * 1e12, row["source"]) for dtype, tera in row["tflops"].items()]


def gpu_bandwidth(name: str) -> tuple[float, str] | None:
    """(device memory bandwidth in bytes per second, source), or ``None`` when it is not in the table."""
    row = gpu_row(name)
    return None if row is None else (float(row["memory_gb_per_s"]) * 1e9, row["source"])


def cpu_peaks(cpu: Cpu, cores: int) -> list[Peak]:
    """Physical cores x clock x flops per cycle of the first family in the table that fits.

    ``cores``: what this process may use. The clock is the highest that the system names: vector code often runs below
    it, and a virtual machine may name the base clock and run above, so these are the size of things.
    """
    if cpu.clock_hz is None:
        return []
    count = max(1, min(cores, cpu.physical_cores))
    for row in _table()["cpu"]:
        fits = row["vendor"] == cpu.vendor and set(row["flags"]).issubset(cpu.flags)
        if fits and row.get("family", cpu.family) == cpu.family and cpu.model >= row.get("model_from", 0):
            how = f"{count} cores x {cpu.clock_hz:.3g} Hz x {{}} flops per cycle ({row['source']})"
            return [
                Peak(dtype, count * cpu.clock_hz * per_cycle, how.format(per_cycle))
                for dtype, per_cycle in row["flops_per_cycle"].items()
            ]
    return []


def supports(machine: Machine, what: str) -> str | None:
    """Why ``what`` (one of :data:`KINDS`) makes no sense on this machine, in one sentence; ``None``: it does.

    Raises ValueError for another word.
    """
    if what not in KINDS:
        raise ValueError(f"what is {what!r}, expected one of {', '.join(KINDS)}")
    if machine.torch is None:
        return "torch is not installed."
    if machine.accelerators:
        reasons = (_gpu_reason(gpu, what) for gpu in machine.accelerators)
        return next((reason for reason in reasons if reason), None)
    return _cpu_reason(machine, what)


def _gpu_reason(gpu: Accelerator, what: str) -> str | None:
    named = f"{gpu.name} (capability {gpu.capability})"
    if what == "bf16" and not gpu.bf16:
        return f"{named} has no bf16 in hardware: it needs capability 8.0 (Ampere) or later; fp16 is the choice here."
    if what == "fp16" and not gpu.fp16:
        return f"{named} runs fp16 slower than fp32."
    if what == "tf32" and not gpu.tf32:
        return f"{named} has no TF32: it needs capability 8.0 (Ampere) or later."
    if what in ("triton", "compile") and not gpu.triton:
        return f"{named} cannot run Triton kernels here: they need capability 7.0 (Volta) and the triton package."
    return None


def _cpu_reason(machine: Machine, what: str) -> str | None:
    if what == "bf16" and not machine.fast_bf16:
        return f"{machine.cpu} has no bf16 in hardware (AVX512_BF16 or AMX): it would be slower than fp32."
    if what == "fp16" and not {"avx512_fp16", "amx_fp16"} & set(machine.cpu_flags):
        return f"{machine.cpu} has no fp16 arithmetic in hardware: it would be slower than fp32."
    if what in ("tf32", "triton"):
        return f"{'TF32' if what == 'tf32' else 'Triton'} needs a GPU, and torch sees none."
    if what == "compile" and machine.compiler is None:
        return "torch.compile on a CPU needs a C++ compiler, and none was found (CXX, g++, clang++)."
    return None
