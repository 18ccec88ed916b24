"""Whether the hypervisor leaves this machine its cores: what was measured while it did not says nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

__all__ = ["Watch", "wait_until_quiet"]

STAT = Path("/proc/stat")
LOOK_S = 10.0


def _stolen_s() -> float:
    """Seconds, over all cores, that the hypervisor gave to others so far (field ``steal``; 0.0 where none is told)."""
    if not STAT.exists():
        return 0.0
    fields = STAT.read_text().partition("\n")[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0.0


class Watch:
    """From its making on."""

    def __init__(self) -> None:
        self._begun, self._stolen = time.monotonic(), _stolen_s()

    def stolen(self) -> float:
        """Part of the cores' time that was taken, 0.0 to 1.0."""
        wall = (time.monotonic() - self._begun) * (os.cpu_count() or 1)
        return (_stolen_s() - self._stolen) / wall if wall > 0 else 0.0


def wait_until_quiet(most: float, limit_s: float = 600.0) -> None:
    """Until no more than ``most`` of the cores' time is taken in ten seconds, or ``limit_s`` are over."""
    latest = time.monotonic() + limit_s
    while time.monotonic() < latest:
        watch = Watch()
        time.sleep(LOOK_S)
        if watch.stolen() <= most:
            return
