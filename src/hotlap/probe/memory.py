"""Telemetry about once a second: memory, CPU and disk of this process and its children, from ``/proc``."""

from __future__ import annotations

import os
import time
from typing import Any

from hotlap.probe.recorder import Recorder
from hotlap.probe.sites import Pace
from hotlap.records.rows import Tick

__all__ = ["Telemetry"]

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def _rss(pid: str) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * _PAGE


def _children() -> list[str]:
    found: list[str] = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as file:
            found += file.read().split()
    return found


def _io() -> tuple[int | None, int | None]:
    try:
        with open("/proc/self/io") as file:
            fields = dict(line.split(": ") for line in file.read().splitlines())
    except OSError:
        return None, None
    return int(fields["read_bytes"]), int(fields["write_bytes"])


class Telemetry:
    """Writes ticks, ever more rarely in a long run. On a system without ``/proc`` it writes none."""

    def __init__(self, rec: Recorder, torch: Any) -> None:
        self._rec = rec
        self._torch = torch
        self._pace = Pace(1.0, 0.0005)
        self._works = True

    def write(self, now: int, last: bool = False) -> None:
        """Emit a tick when it is due."""
        if not self._works or not (self._pace.due(now) or last):
            return
        try:
            rss = _rss("self")
        except OSError:
            self._works = False
            return
        read, written = _io()
        import resource  # not everywhere, but where there is a /proc

        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu, system = time.process_time_ns(), int(used.ru_stime * 1e9)
        row = Tick(now, rss, cpu, self._children_rss(), read, written, self._device(), None, used.ru_minflt, system)
        self._rec.emit(row)

    def _children_rss(self) -> int | None:
        total = 0
        try:
            children = _children()
        except OSError:
            return None
        for pid in children:
            try:
                total += _rss(pid)
            except OSError:
                continue  # it ended meanwhile
        return total

    def _device(self) -> int | None:
        cuda = self._torch.cuda
        return int(cuda.memory_reserved(self._rec.device)) if cuda.is_initialized() else None
