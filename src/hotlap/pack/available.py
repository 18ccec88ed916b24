"""How much of the machine this process may use: all of it, or less where a cgroup says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["cores", "memory_bytes"]

_GROUPS, _ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def _places(controller: str, groups: Path, root: Path) -> Iterator[Path]:
    """Folders of our cgroups (v2, and v1's of this controller) and of those around them, which limit us too."""
    try:
        own = [line.split(":", 2)[1:] for line in groups.read_text().splitlines()]
    except OSError:  # no cgroups
        return
    for controllers, path in own:
        if controllers == "":
            base = root
        elif controller in controllers.split(","):
            base = next(
                (root / name for name in (controller, controllers) if (root / name).is_dir()), root / controller
            )
        else:
            continue
        folder = base / path.lstrip("/")
        yield from (place for place in [folder, *folder.parents] if place.is_relative_to(base))


def _numbers(path: Path) -> list[int]:
    """The numbers that a cgroup's file begins with; none where there is no such file, or no limit."""
    try:
        words = path.read_text().split()
    except OSError:
        return []
    return [int(word) for word in words] if all(word.isdigit() for word in words) else []


def memory_bytes(groups: Path = _GROUPS, root: Path = _ROOT) -> int:
    """The tightest limit on the way from our group to the root (cgroup v1 or v2), or all physical memory."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for place in _places("memory", groups, root):
        for name in ("memory.max", "memory.limit_in_bytes"):
            total = min([total, *_numbers(place / name)])  # v1 writes "no limit" as a number near 2**63
    return total


def cores(groups: Path = _GROUPS, root: Path = _ROOT) -> int:
    """Cores this process may use; of a quota of 1.5 one: a thread too many is held up for the rest of each period."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for place in _places("cpu", groups, root):
        v2, quota, period = (_numbers(place / f"cpu.{name}") for name in ("max", "cfs_quota_us", "cfs_period_us"))
        for limit in (v2, quota + period):  # v1 has no quota as -1
            if len(limit) == 2 and limit[1]:
                found = min(found, limit[0] // limit[1])
    return max(found, 1)
