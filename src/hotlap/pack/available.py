"""How much memory this process may fill: the machine's, or less where a cgroup says so."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["memory_bytes"]

_ROOT = Path("/sys/fs/cgroup")


def memory_bytes(groups: Path = Path("/proc/self/cgroup"), root: Path = _ROOT) -> int:
    """The tightest limit on the way from our group to the root (cgroup v1 or v2), or all physical memory."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        own = dict(line.split(":", 2)[1:] for line in groups.read_text().splitlines())
    except (OSError, ValueError):  # no cgroups
        return total
    for controller, base, name in (("", root, "memory.max"), ("memory", root / "memory", "memory.limit_in_bytes")):
        if controller not in own:
            continue
        folder = base / own[controller].lstrip("/")
        for place in [folder, *folder.parents]:
            limit = place / name
            if place.is_relative_to(base) and limit.is_file() and (text := limit.read_text().strip()).isdigit():
                total = min(total, int(text))  # v1 writes "no limit" as a number near 2**63
    return total
