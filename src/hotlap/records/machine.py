"""Machine facts: what this computer is and can do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Accelerator", "Machine", "Peak"]

_CPU_UNITS = {"bf16": ("avx512_bf16", "amx_bf16"), "fp16": ("avx512_fp16", "amx_fp16")}
"""Flags of x86 processors by the type that they compute in hardware."""


@dataclass(frozen=True)
class Accelerator:
    """One GPU as torch reports it."""

    name: str
    memory_bytes: int
    capability: str
    """``9.0``"""
    bf16: bool
    fp16: bool
    tf32: bool
    triton: bool


@dataclass(frozen=True)
class Peak:
    """Theoretical peak of this machine for one type, with its source."""

    dtype: str
    flops_per_s: float
    source: str


@dataclass(frozen=True)
class Machine:
    """Facts that levers and reports need."""

    system: str
    cpu: str
    cores: int
    """Cores this process may use (affinity and cgroup quota)."""
    memory_bytes: int
    memory_available_bytes: int
    cpu_flags: list[str]
    """Of interest only: avx2, avx512f, avx512_bf16, amx_bf16, avx512_fp16."""
    python: str
    torch: str | None
    """None: torch is not installed."""
    accelerators: list[Accelerator] = field(default_factory=list)
    peaks: list[Peak] = field(default_factory=list)
    sandbox: str = "none"
    """``root``, ``userns`` or ``none``: how writes of a trial can be kept away from the user's files. Empty: not looked
    for."""
    compiler: str | None = None
    """C++ compiler found for torch.compile on CPU."""
    shm_bytes: int | None = None
    shm_free_bytes: int | None = None
    allocators: list[str] = field(default_factory=list)
    """Paths of memory allocators that can be preloaded (tcmalloc, jemalloc), the likeliest to pay first."""
    host: str | None = None
    """Digest of the host's name, to tell two machines of one kind apart; None: not recorded."""
    schema: Literal["hotlap.machine/1"] = "hotlap.machine/1"

    @property
    def has_gpu(self) -> bool:
        """Whether torch sees an accelerator."""
        return bool(self.accelerators)

    @property
    def fast_bf16(self) -> bool:
        """Whether bf16 compute is in hardware here."""
        return all(a.bf16 for a in self.accelerators) if self.accelerators else self.fast_bf16_on_cpu

    @property
    def fast_bf16_on_cpu(self) -> bool:
        """Whether the CPU computes bf16 in hardware, beside accelerators or alone."""
        return any(unit in self.cpu_flags for unit in _CPU_UNITS["bf16"])

    def emulates(self, dtype: str, on_cpu: bool) -> bool:
        """Whether ``bf16`` or ``fp16`` is computed without units for it, as far as is known: of other processors than
        x86 it is not."""
        if not on_cpu:
            return bool(self.accelerators) and not all(getattr(a, dtype) for a in self.accelerators)
        return "avx2" in self.cpu_flags and not any(unit in self.cpu_flags for unit in _CPU_UNITS[dtype])
