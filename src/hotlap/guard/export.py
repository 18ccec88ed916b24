"""The run's numbers as series for the tracker that the script itself uses.

The guard writes them beside the timeline, the guest in the script's process hands them over (``inject/export.py``).
Nothing is computed there: a dashboard shows what ``hotlap watch`` and ``/metrics`` show.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from hotlap.guard.status import Status
from hotlap.records.codec import dumps
from hotlap.records.figures import NAME, PREFIX, Figures
from hotlap.records.run_folder import write_atomic

__all__ = ["EVERY_S", "Export", "series"]

EVERY_S = 10.0
"""A dashboard of a day's run then holds 8,640 points per series; the figures are means over the last 30 s anyway."""


def series(status: Status) -> dict[str, float]:
    """What was measured, by name."""
    step_s, drift = status.step_s, status.drift
    found: dict[str, float | None] = {
        "samples_per_s": status.samples_per_s,
        "step_s": step_s,
        "roof_frac": status.roof_share,
        "data_wait_s": status.phases.get("data_wait"),
        "memory_bytes/script": status.rss_bytes,
        "memory_bytes/children": status.children_rss_bytes,
        "memory_bytes/device": status.device_bytes,
        "drift": float(drift is not None),
        "drifts": float(status.drifts),
    }
    if step_s:
        found |= {f"phase_frac/{phase}": seconds / step_s for phase, seconds in status.phases.items()}
    return {PREFIX + name: float(value) for name, value in found.items() if value is not None}


class Export:
    """Writes ``figures.json`` when it is due."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = folder / NAME
        self._clock = clock
        self._due_s = 0.0
        self._written: tuple[int, int] | None = None

    def write(self, status: Status, pid: int, drifts: list[str]) -> None:
        """Write how it goes now, at most every :data:`EVERY_S`, after new steps. HotlapError: the disk refuses."""
        now, made = self._clock(), (pid, status.steps)
        if not status.steps or made == self._written or now < self._due_s:
            return
        # not synced to the disk: that can make the script's own writes wait, and the file is worthless after a crash
        write_atomic(self._path, dumps(Figures(pid, status.steps, series(status), drifts)), durable=False)
        self._due_s, self._written = now + EVERY_S, made
