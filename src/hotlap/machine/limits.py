"""What this process may use of the machine: cores by affinity and cgroup quota (v1 and v2), memory by cgroup limit."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

__all__ = ["cgroup_folders", "cpu_quota", "memory_limit_bytes", "memory_now", "usable_cores"]

_UNLIMITED = 1 << 60
"""cgroup v1 writes "no limit" as a number near 2**63, rounded to pages."""


def _text(path: Path) -> str | None:
    """A kernel file's text; ``None`` where the kernel, or a sandbox around us, does not offer it."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


def cgroup_folders(controller: str, root: Path = Path("/")) -> list[Path]:
    """Folders of this process' cgroup and its ancestors, for v2 and for ``controller`` of v1; innermost first."""
    listing = _text(root / "proc/self/cgroup") or ""
    found: list[Path] = []
    for line in listing.splitlines():
        number, controllers, path = line.split(":", 2)
        mounts = ["sys/fs/cgroup"] if number == "0" else []
        if controller in controllers.split(","):
            mounts = [f"sys/fs/cgroup/{controller}", f"sys/fs/cgroup/{controllers}"]
        for mount in mounts:
            base = root / mount
            inner = base / path.lstrip("/")
            while inner != base and base in inner.parents:
                found.append(inner)
                inner = inner.parent
            found.append(base)  # also right inside a container, whose own group is mounted here
    return found


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Cores' worth of CPU time that the cgroups allow (``1.5``), the tightest of them; ``None`` without a quota."""
    quotas: list[float] = []
    for folder in cgroup_folders("cpu", root):
        v2 = (_text(folder / "cpu.max") or "").split()
        if len(v2) == 2 and v2[0].isdigit():
            quotas.append(int(v2[0]) / int(v2[1]))
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
        if quota and period and int(quota) > 0:
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def usable_cores(root: Path = Path("/")) -> int:
    """Cores this process may use: its affinity, and no more than the quota (rounded down, at least 1)."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    quota = cpu_quota(root)
    # a thread too many is throttled for the rest of each period, so a quota of 1.5 is one core
    return affinity if quota is None else max(1, min(affinity, int(quota + 1e-6)))


def memory_limit_bytes(root: Path = Path("/")) -> tuple[int, int] | None:
    """The smallest limit of the memory cgroups, and what of it is taken; ``None`` without a limit.

    Taken is what is used without reclaimable page cache, and what a group above does not have left.
    """
    limits: list[int] = []
    left: list[int] = []
    for folder in cgroup_folders("memory", root):
        for limit_name, used_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, used = _text(folder / limit_name), _text(folder / used_name)
            if limit and used and limit.isdigit() and int(limit) < _UNLIMITED:
                stat = dict(line.split()[:2] for line in (_text(folder / "memory.stat") or "").splitlines())
                cache = int(stat.get("total_inactive_file", stat.get("inactive_file", "0")))
                limits.append(int(limit))
                left.append(int(limit) - max(0, int(used) - cache))
    return (min(limits), min(limits) - max(0, min(left))) if limits else None


def memory_now(root: Path = Path("/")) -> tuple[int, int]:
    """(total, available) bytes for this process: the machine's, or the cgroup's where that is less."""
    memory = psutil.virtual_memory()
    total, available = int(memory.total), int(memory.available)
    limit = memory_limit_bytes(root)
    if limit is not None:
        total, available = min(total, limit[0]), min(available, limit[0] - limit[1])
    return total, available
