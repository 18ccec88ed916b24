"""What this machine can and cannot do for a training, and what would be worth fixing. One small check per subject."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hotlap.machine.host import Host, read_host
from hotlap.machine.peaks import supports
from hotlap.machine.storage import Storage, measure_storage
from hotlap.records.errors import HotlapError
from hotlap.records.machine import Machine

__all__ = ["CHECKS", "Check", "Subject", "examine"]

State = Literal["ok", "warn", "fail"]
_LEAST_MEMORY_BYTES = 2 << 30
"""Two arms of even a small torch training, at about 0.5 GB each, and the page cache they read from."""
_LEAST_SHM_BYTES = 1 << 30
"""Docker's default of 64 MB dies of a bus error at the first large batch from a worker."""
_SLOW_READ_BYTES_PER_S = 150e6
"""A hard disk; below it, small files arrive slower than any augmentation."""
_LEAST_OPEN_FILES = 1024


@dataclass(frozen=True)
class Check:
    """One line of ``hotlap doctor``."""

    name: str
    state: State
    value: str | float | None
    """What was found; a number when ``unit`` is set."""
    advice: str = ""
    """What to do about it; empty when there is nothing to do."""
    unit: str = ""
    """``bytes``, ``bytes_per_s``, ``cores`` or nothing."""


@dataclass(frozen=True)
class Subject:
    """Everything a check may look at."""

    machine: Machine
    host: Host
    storage: Storage | HotlapError


def _system(s: Subject) -> Check:
    if s.machine.system == "Linux":
        return Check("system", "ok", "Linux")
    if s.machine.system == "Windows":
        return Check("system", "warn", "Windows", "Hotlap is not made for Windows itself: use WSL 2.")
    advice = (
        f"On {s.machine.system}, `hotlap diagnose`, `hotlap run --plan` and `hotlap report` should work here, but are "
        "not tested. `hotlap speedup` cannot keep a trial's writes away from your files there: use Linux for it."
    )
    return Check("system", "warn", s.machine.system, advice)


def _torch(s: Subject) -> Check:
    if s.machine.torch is None:
        return Check("torch", "fail", None, "Install PyTorch 2.6 or later into the Python that runs the training.")
    major, minor = (int(part) for part in s.machine.torch.split(".")[:2])
    if (major, minor) < (2, 6):
        return Check("torch", "fail", s.machine.torch, "Hotlap needs PyTorch 2.6 or later.")
    return Check("torch", "ok", s.machine.torch)


def _accelerator(s: Subject) -> Check:
    gpus = s.machine.accelerators
    if gpus:
        return Check("accelerator", "ok", ", ".join(f"{g.name} (capability {g.capability})" for g in gpus))
    advice = (
        ""
        if "+cpu" in (s.machine.torch or "")
        else "If there is a GPU here, `nvidia-smi` tells whether its driver answers."
    )
    return Check("accelerator", "ok", "none: training runs on the CPU", advice)


def _cores(s: Subject) -> Check:
    usable, all_cores = s.machine.cores, s.host.logical_cores
    if usable < all_cores:
        advice = (
            f"{all_cores} cores are visible, {usable} may be used (affinity or cgroup quota). Programs that count "
            "what they see start too many threads: the `threads` lever sets it right."
        )
        return Check("cores", "warn", float(usable), advice, "cores")
    advice = "" if usable > 1 else "With one core, workers and the step take turns: feeding cannot overlap."
    return Check("cores", "ok" if usable > 1 else "warn", float(usable), advice, "cores")


def _load(s: Subject) -> Check:
    busy = s.host.busy_cores
    if busy > 0.25 * s.host.logical_cores:
        advice = (
            "Somebody else uses this machine now. Disturbed windows are dropped, so trials take longer: better, wait."
        )
        return Check("load now", "warn", round(busy, 1), advice, "cores")
    return Check("load now", "ok", round(busy, 1), "", "cores")


def _memory(s: Subject) -> Check:
    available = s.machine.memory_available_bytes
    if available < _LEAST_MEMORY_BYTES:
        advice = "Both arms of a trial live at once; with this little they run one after the other, or not at all."
        return Check("memory available", "warn", float(available), advice, "bytes")
    return Check("memory available", "ok", float(available), "", "bytes")


def _shared_memory(s: Subject) -> Check:
    size = s.machine.shm_bytes
    if size is None:
        return Check("shared memory", "ok", "no /dev/shm on this system")
    if size < _LEAST_SHM_BYTES:
        advice = (
            "Loader workers hand batches over in /dev/shm and die of a bus error when it is full: "
            "`docker run --shm-size=8g`."
        )
        return Check("shared memory", "warn", float(size), advice, "bytes")
    return Check("shared memory", "ok", float(size), "", "bytes")


def _storage(s: Subject) -> Check:
    if isinstance(s.storage, HotlapError):
        return Check("storage read", "warn", s.storage.what, s.storage.hint)
    speed, mount = s.storage.read_bytes_per_s, s.storage.mount
    if mount is not None and mount.network:
        advice = (
            f"{mount.point} is a network mount ({mount.kind}): copy the data to a local disk, or pack it into few "
            "large files."
        )
        return Check("storage read", "warn", speed, advice, "bytes_per_s")
    if not s.storage.direct:
        return Check("storage read", "ok", speed, "From memory (page cache or tmpfs), not from a disk.", "bytes_per_s")
    if speed < _SLOW_READ_BYTES_PER_S:
        advice = (
            "As slow as a hard disk: keep the data in memory or on an SSD, or pack it so that it is read in sequence."
        )
        return Check("storage read", "warn", speed, advice, "bytes_per_s")
    return Check("storage read", "ok", speed, "", "bytes_per_s")


def _sandbox(s: Subject) -> Check:
    if s.machine.sandbox != "none":
        return Check("sandbox", "ok", s.machine.sandbox)
    advice = (
        "No overlay can be mounted here (no root, no user namespaces), so trials need `--no-sandbox`, and then really "
        "write your files. In Docker, `--cap-add SYS_ADMIN --security-opt apparmor=unconfined` allows it."
    )
    return Check("sandbox", "warn", "none", advice)


def _compiler(s: Subject) -> Check:
    reason = supports(s.machine, "compile")
    if reason is None:
        return Check("torch.compile", "ok", s.machine.compiler or "Triton")
    return Check("torch.compile", "warn", None, reason)


def _bf16(s: Subject) -> Check:
    reason = supports(s.machine, "bf16")
    return Check("bf16 in hardware", "ok", "no" if reason else "yes", reason or "")


def _stacks(s: Subject) -> Check:
    if s.host.timer_signal:
        return Check("stack sampling", "ok", "interval timer")
    return Check(
        "stack sampling", "warn", None, "SIGALRM is blocked or missing: causes are found without lines of code."
    )


def _environment(s: Subject) -> Check:
    found = s.host.environment
    shown = " ".join(f"{k}={v}" for k, v in sorted(found.items())) or "nothing set"
    if "CUDA_LAUNCH_BLOCKING" in found:
        return Check("environment", "warn", shown, "CUDA_LAUNCH_BLOCKING makes every kernel launch wait: unset it.")
    threads = found.get("OMP_NUM_THREADS", "")
    if threads.isdigit() and int(threads) > s.machine.cores:
        return Check("environment", "warn", shown, f"OMP_NUM_THREADS is above the {s.machine.cores} usable cores.")
    if threads == "1" and s.machine.cores > 2 and not s.machine.accelerators:
        return Check(
            "environment", "warn", shown, "OMP_NUM_THREADS=1 leaves all cores but one idle in a step on the CPU."
        )
    return Check("environment", "ok", shown)


def _governor(s: Subject) -> Check:
    if s.host.governor == "powersave":
        advice = (
            "The clock follows the load, so step times wander: `cpupower frequency-set -g performance` while measuring."
        )
        return Check("CPU governor", "warn", "powersave", advice)
    return Check("CPU governor", "ok", s.host.governor or "not told (virtual machine)")


def _huge_pages(s: Subject) -> Check:
    if s.host.huge_pages == "never" and not s.machine.accelerators:
        advice = "Large CPU tensors gain from `madvise` in /sys/kernel/mm/transparent_hugepage/enabled."
        return Check("huge pages", "warn", "never", advice)
    return Check("huge pages", "ok", s.host.huge_pages or "not told")


def _open_files(s: Subject) -> Check:
    limit = s.host.open_files
    if limit is not None and 0 <= limit < _LEAST_OPEN_FILES:
        return Check("open files", "warn", float(limit), "Workers share batches through files: `ulimit -n 65536`.")
    return Check("open files", "ok", None if limit is None else float(limit))


CHECKS: tuple[Callable[[Subject], Check], ...] = (
    _system, _torch, _accelerator, _cores, _load, _memory, _shared_memory, _storage,
    _sandbox, _compiler, _bf16, _stacks, _environment, _governor, _huge_pages, _open_files,
)  # fmt: skip
"""In the order in which they are shown."""


def examine(
    machine: Machine,
    folder: Path,
    sandbox: str | None = None,
    storage: Storage | None = None,
    host: Host | None = None,
) -> list[Check]:
    """All checks on ``machine``; ``folder``: where the training data lies.

    ``sandbox`` (``root``, ``userns``, ``none``) is found by the caller; None: the machine's own field holds.
    ``storage`` and ``host`` are measured (about three seconds) when not given. A folder that cannot be measured is a
    finding, not an error.
    """
    found: Storage | HotlapError
    try:
        found = storage if storage is not None else measure_storage(folder)
    except HotlapError as err:
        found = err
    if sandbox is not None:
        machine = replace(machine, sandbox=sandbox)
    subject = Subject(machine, host if host is not None else read_host(), found)
    return [check(subject) for check in CHECKS]
