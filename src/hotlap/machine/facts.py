"""Read this machine: cores, memory, CPU, and what the user's torch sees."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hotlap.machine.allocators import find_allocators
from hotlap.machine.cpu import read_cpu
from hotlap.machine.limits import memory_now, usable_cores
from hotlap.machine.peaks import cpu_peaks, gpu_peaks
from hotlap.records.codec import decode
from hotlap.records.errors import HotlapError
from hotlap.records.machine import Accelerator, Machine

__all__ = ["ask_torch", "find_compiler", "host_digest", "read_machine", "told_by_package"]

_TIMEOUT_S = 120.0
"""A first import of torch from a cold network disk was seen to take more than a minute."""


def ask_torch(python: str = sys.executable) -> dict[str, Any]:
    """What torch sees under ``python``: keys ``torch``, ``python``, ``accelerators``, ``problem``.

    Raises HotlapError when that Python cannot be run or does not answer in two minutes.
    """
    script = Path(__file__).with_name("ask_torch.py")
    environment = {k: v for k, v in os.environ.items() if k != "HOTLAP_CALL"}  # the child is no training
    try:
        done = subprocess.run(
            [python, str(script)], capture_output=True, text=True, timeout=_TIMEOUT_S, env=environment, check=False
        )
    except OSError as err:
        raise HotlapError(f"Cannot run {python}: {err.strerror}.", "Which Python runs the training?") from err
    except subprocess.TimeoutExpired as err:
        raise HotlapError(
            f"`import torch` under {python} took over {_TIMEOUT_S:.0f} s.", "Does the GPU answer?"
        ) from err
    for line in done.stdout.splitlines():
        if line.startswith("HOTLAP "):
            answer: dict[str, Any] = json.loads(line.removeprefix("HOTLAP "))
            return answer
    last = (done.stderr.strip().splitlines() or ["no output"])[-1]
    raise HotlapError(f"{python} ended with {done.returncode} when asked about torch: {last}")


def told_by_package() -> dict[str, Any] | None:
    """What :func:`ask_torch` would say of this Python's torch, if that is a CPU build, which sees no GPU.

    Its package's version says so, without the seconds that importing it takes. None if it has to be asked.
    """
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None
    if not version.endswith("+cpu"):
        return None
    return {"torch": version, "python": platform.python_version(), "accelerators": [], "problem": None}


def find_compiler() -> str | None:
    """Path of the C++ compiler that torch.compile would use on a CPU."""
    names = (os.environ.get("CXX", ""), "g++", "clang++", "c++")
    return next((path for name in names if name and (path := shutil.which(name))), None)


def host_digest() -> str | None:
    """What tells this host from others without naming it; None: it has no name."""
    name = platform.node()
    return hashlib.sha256(f"hotlap host {name}".encode()).hexdigest()[:12] if name else None


def read_machine(python: str = sys.executable, sandbox: str = "none", *, import_torch: bool = False) -> Machine:
    """This machine as levers and reports need it; about two seconds where torch may see a GPU: a child imports it.

    ``python``: the interpreter that runs the training. ``sandbox``: ``root``, ``userns`` or ``none``, found by the
    caller. ``import_torch``: do so even where its package tells enough, to see whether it can be.
    Raises HotlapError when ``python`` cannot be run, or its torch is broken.
    """
    packaged = told_by_package() if python == sys.executable and not import_torch else None
    answer = packaged or ask_torch(python)
    if answer["problem"]:
        raise HotlapError(
            f"torch cannot be imported under {python}: {answer['problem']}.", "Repair the installation first."
        )
    gpus = decode(list[Accelerator], answer["accelerators"], "accelerators")
    cpu = read_cpu()
    cores = usable_cores()
    total, available = memory_now()
    shm = shutil.disk_usage("/dev/shm") if Path("/dev/shm").is_dir() else None
    return Machine(
        system=platform.system(),
        cpu=cpu.name,
        cores=cores,
        memory_bytes=total,
        memory_available_bytes=available,
        cpu_flags=cpu.flags,
        python=answer["python"],
        torch=answer["torch"],
        accelerators=gpus,
        peaks=gpu_peaks(gpus[0].name) if gpus else cpu_peaks(cpu, cores),
        sandbox=sandbox,
        compiler=find_compiler(),
        shm_bytes=shm.total if shm is not None else None,
        shm_free_bytes=shm.free if shm is not None else None,
        allocators=find_allocators(python),
        host=host_digest(),
    )
