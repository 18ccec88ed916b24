"""The state of the host that is no fact of the machine: its load now, kernel settings, the user's environment."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

__all__ = ["Host", "read_host"]

_SAMPLE_S = 0.3
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_PROC_BIND", "KMP_AFFINITY", "GOMP_CPU_AFFINITY")
_DEBUG_VARIABLES = ("CUDA_LAUNCH_BLOCKING", "TORCH_SHOW_CPP_STACKTRACES", "PYTHONMALLOC", "TORCH_DISTRIBUTED_DEBUG")


@dataclass(frozen=True)
class Host:
    """What the doctor looks at beside the machine's facts. ``None``: this system does not tell."""

    logical_cores: int
    busy_cores: float
    """Cores at work during the last moments, by anybody."""
    governor: str | None = None
    huge_pages: str | None = None
    """Transparent huge pages: ``always``, ``madvise`` or ``never``."""
    open_files: int | None = None
    """Soft limit of open files."""
    timer_signal: bool = True
    """Whether an interval timer can interrupt the training thread here, which sampling stacks needs."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables of interest that are set."""


def read_host(
    root: Path = Path("/"), environment: Mapping[str, str] | None = None, sample_s: float = _SAMPLE_S
) -> Host:
    """Read the host's state; takes ``sample_s`` seconds to see the load. ``environment``: None is this process' own."""
    variables = os.environ if environment is None else environment
    chosen = {k: variables[k] for k in (*THREAD_VARIABLES, *_DEBUG_VARIABLES) if variables.get(k)}
    busy_frac = psutil.cpu_percent(interval=sample_s) / 100.0
    count = psutil.cpu_count() or 1
    pages = _line(root / "sys/kernel/mm/transparent_hugepage/enabled")
    return Host(
        logical_cores=count,
        busy_cores=busy_frac * count,
        governor=_line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        huge_pages=pages.partition("[")[2].partition("]")[0] if pages else None,
        open_files=_open_files(),
        timer_signal=_timer_works(),
        environment=chosen,
    )


def _line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:  # virtual machines and containers hide some of these
        return None


def _open_files() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _timer_works() -> bool:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return hasattr(signal, "setitimer")
    return signal.SIGALRM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
