"""The CPU: its name, the flags of interest, physical cores and clock."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["FLAGS", "Cpu", "read_cpu"]

FLAGS = ("avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_fp16")
"""Instruction sets that decide which number types are fast."""


@dataclass(frozen=True)
class Cpu:
    """What /proc/cpuinfo and sysfs say."""

    name: str
    vendor: str = ""
    family: int = 0
    model: int = 0
    flags: list[str] = field(default_factory=list)
    physical_cores: int = 1
    """Of those that this process may use; two hyperthreads are one."""
    clock_hz: float | None = None
    """Highest clock that the system names."""


def read_cpu(root: Path = Path("/")) -> Cpu:
    """Read the CPU's facts; on other systems than Linux, its name alone."""
    try:
        text = (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Cpu(platform.processor() or platform.machine(), physical_cores=os.cpu_count() or 1)
    first: dict[str, str] = {}
    clocks_mhz: list[float] = []
    for line in text.splitlines():
        key, _, value = line.partition(":")
        first.setdefault(key.strip(), value.strip())
        if key.strip() == "cpu MHz":
            clocks_mhz.append(float(value))
    present = set((first.get("flags") or first.get("Features") or "").split())
    return Cpu(
        name=first.get("model name") or platform.machine(),
        vendor=first.get("vendor_id", ""),
        family=int(first.get("cpu family", "0")),
        model=int(first.get("model", "0")) if first.get("model", "0").isdigit() else 0,
        flags=[flag for flag in FLAGS if flag in present],
        physical_cores=_physical_cores(root),
        clock_hz=_clock_hz(root, clocks_mhz),
    )


def _usable() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def _physical_cores(root: Path) -> int:
    siblings: set[str] = set()
    usable = _usable()
    for number in usable:
        path = root / f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list"
        try:
            siblings.add(path.read_text(encoding="ascii").strip())
        except OSError:  # containers may hide the topology: count each as a core
            siblings.add(str(number))
    return max(1, len(siblings))


def _clock_hz(root: Path, clocks_mhz: list[float]) -> float | None:
    try:
        khz = (root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").read_text(encoding="ascii")
        return float(khz) * 1e3
    except (OSError, ValueError):  # virtual machines have no cpufreq
        return max(clocks_mhz) * 1e6 if clocks_mhz else None
