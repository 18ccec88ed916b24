"""What this machine can do, and settings that ask for more than that."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeVar, get_args

import torch

from hotlap_workloads.engine.freed_memory import keep_freed_memory
from hotlap_workloads.engine.settings import EngineSettings, TrackerName
from hotlap_workloads.errors import SettingsError

__all__ = ["Machine", "apply_process_wide", "check_machine", "compiler", "pick_device", "read_machine", "resolved"]

S = TypeVar("S", bound=EngineSettings)

VOLTA, AMPERE = (7, 0), (8, 0)
"""Compute capabilities: Triton, and so torch.compile, needs 7.0; TF32 and bf16 need 8.0 (CUDA programming guide)."""


@dataclass(frozen=True)
class Machine:
    """``capability`` is the GPU's compute capability, None without a GPU; ``cores`` are those this process may use.

    ``cpu_bf16``: whether the CPU computes bf16 in hardware. Where it does not, bf16 is emulated and slower than fp32.
    ``trackers`` are those installed.
    """

    cores: int
    capability: tuple[int, int] | None = None
    name: str = "CPU"
    cpu_bf16: bool = True
    trackers: tuple[TrackerName, ...] = ()

    @property
    def gpu(self) -> bool:
        return self.capability is not None

    @property
    def tf32(self) -> bool:
        return self.capability is not None and self.capability >= AMPERE

    @property
    def cpu(self) -> Machine:
        """The same machine without its GPU."""
        return replace(self, capability=None, name="CPU")

    @property
    def autocast(self) -> Literal["off", "fp16", "bf16"]:
        """bf16 wherever the device has it in hardware, fp16 on older GPUs, nothing on older CPUs."""
        if self.capability is None:
            return "bf16" if self.cpu_bf16 else "off"
        return "fp16" if self.capability < AMPERE else "bf16"

    def tracker(self, wanted: TrackerName) -> tuple[TrackerName, ...]:
        """The tracker that a preset asks for, or none where it is not installed."""
        return (wanted,) if wanted in self.trackers else ()

    def workers(self, wanted: int) -> int:
        """Loading processes worth having: on a CPU they take cores from the step, on a GPU one core feeds it."""
        free = self.cores - 1 if self.gpu else (self.cores - 2) // 2
        return max(0, min(wanted, free))

    @property
    def packed_workers(self) -> int:
        """The same where data lie decoded in a pack: a batch is a copy out of mapped memory, which two processes do.

        None without cores to spare: on two, a memory map of images gives six times as many in the training's own
        process as through two others (DataLoader in bench/results/loader_feed_images.json).
        """
        return max(0, min(2, (self.cores - 2) // 2))


def read_machine() -> Machine:
    """This machine, now."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    trackers = tuple(name for name in get_args(TrackerName) if _is_installed(name))
    on_cpu = Machine(cores, cpu_bf16=_cpu_has_bf16(), trackers=trackers)
    if not torch.cuda.is_available():
        return on_cpu
    return replace(on_cpu, capability=torch.cuda.get_device_capability(), name=torch.cuda.get_device_name())


def _is_installed(library: str) -> bool:
    """Without importing it. A folder of that name in the current one, as W&B leaves there, is none."""
    spec = find_spec(library)
    return spec is not None and spec.origin is not None


def _cpu_has_bf16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """By the flags that Linux tells, of x86 or ARM; taken for granted where it cannot be asked."""
    try:
        words = set(cpuinfo.read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return True
    return bool(words & {"avx512_bf16", "amx_bf16", "bf16"})


def pick_device(settings: EngineSettings, machine: Machine, local_rank: int = 0) -> torch.device:
    """The device to train on."""
    if settings.device == "cuda" and not machine.gpu:
        raise SettingsError("device=cuda, and torch sees no GPU here.", "Use device=cpu or device=auto.")
    if settings.device == "cpu" or not machine.gpu:
        return torch.device("cpu")
    return torch.device("cuda", local_rank)


def resolved(settings: S, machine: Machine) -> S:
    """The settings with ``precision=auto`` made what the device has."""
    if settings.precision != "auto":
        return settings
    device = machine.cpu if settings.device == "cpu" else machine
    return replace(settings, precision=device.autocast)


def check_machine(settings: EngineSettings, machine: Machine) -> None:
    """Raise SettingsError for what this machine cannot do, with what to use instead."""
    on_gpu = machine.gpu and settings.device != "cpu"
    machine = machine if on_gpu else machine.cpu
    capability = machine.capability or (0, 0)
    old = on_gpu and capability < AMPERE
    if settings.tf32 and (old or not on_gpu):
        hint = f"Set tf32=false; precision={machine.autocast} is what is fast there."
        raise SettingsError(f"tf32=true, and {machine.name} has no TF32.", hint)
    if settings.precision == "bf16" and old:
        raise SettingsError(f"precision=bf16, and {machine.name} has no bf16.", "Use precision=fp16.")
    if settings.precision == "fp16" and not on_gpu:
        raise SettingsError("precision=fp16 scales the loss for a GPU, and this is a CPU.",
                            f"Use precision={machine.autocast}.")  # fmt: skip
    if settings.compile and on_gpu and capability < VOLTA:
        raise SettingsError(f"compile=true, and {machine.name} is too old for Triton.", "Use compile=false.")
    if settings.compile and not on_gpu and shutil.which(compiler()) is None:
        raise SettingsError(
            f"compile=true needs a C++ compiler on a CPU, and {compiler()} is not found.",
            "Install g++, name another by CXX, or set compile=false.",
        )
    if settings.search_batch_size and not on_gpu:
        raise SettingsError("search_batch_size=true needs a GPU: a CPU has no memory of its own to fill.")


def compiler() -> str:
    """The C++ compiler that torch.compile takes on a CPU, as torch._inductor.config has it."""
    return os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")


def apply_process_wide(settings: EngineSettings) -> None:
    """Set what holds for the whole process: torch's switches, and what the C library does with freed memory."""
    if settings.keep_freed_memory:
        keep_freed_memory()
    if settings.threads:
        torch.set_num_threads(settings.threads)
    if settings.deterministic:  # cuBLAS reads it when it is first used
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cuda.matmul.allow_tf32 = settings.tf32
    torch.backends.cudnn.allow_tf32 = settings.tf32
    torch.backends.cudnn.benchmark = settings.cudnn_benchmark
    torch.backends.cudnn.deterministic = settings.deterministic
    torch.use_deterministic_algorithms(settings.deterministic, warn_only=True)
