"""How much memory this process may fill: the machine's, or less where a cgroup says so."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["memory_bytes"]

_UNIFIED = Path("/sys/fs/cgroup")


def memory_bytes(groups: Path = Path("/proc/self/cgroup"), root: Path = _UNIFIED) -> int:
    """The tightest limit on the way from our group to the root (cgroup v2), or all physical memory."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        own = next(line[3:] for line in groups.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):  # no cgroup v2
        return total
    folder = root / own.lstrip("/")
    for place in [folder, *folder.parents]:
        limit = place / "memory.max"
        if place.is_relative_to(root) and limit.is_file() and (text := limit.read_text().strip()).isdigit():
            total = min(total, int(text))
    return total
