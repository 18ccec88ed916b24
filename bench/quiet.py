"""Whether the hypervisor leaves this machine its cores: what was measured while it did not says nothing."""

from __future__ import annotations

import os
import time

from hotlap.trial import neighbours

__all__ = ["Watch", "wait_until_quiet"]

LOOK_S = 10.0


class Watch:
    """From its making on."""

    def __init__(self) -> None:
        self._first = neighbours.look(0.0)

    def stolen(self) -> float:
        """Part of the cores' time that was given to others, 0.0 to 1.0 (0.0 where no /proc/stat tells)."""
        load = neighbours.between(self._first, neighbours.look(0.0))
        return load.steal / len(os.sched_getaffinity(0)) if load is not None else 0.0


def wait_until_quiet(most: float, limit_s: float = 600.0) -> None:
    """Until no more than ``most`` of the cores' time is taken in ten seconds, or ``limit_s`` are over."""
    latest = time.monotonic() + limit_s
    while time.monotonic() < latest:
        watch = Watch()
        time.sleep(LOOK_S)
        if watch.stolen() <= most:
            return
