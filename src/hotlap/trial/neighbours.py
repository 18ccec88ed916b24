"""What others on this machine did while an arm ran: cores taken, cores idle, on the CPUs that the arm may use."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

__all__ = ["CpuLook", "Load", "between", "look", "parse_stat"]


@dataclass(frozen=True)
class CpuLook:
    """CPU seconds since boot, summed over the CPUs that we may use, at one moment."""

    t_s: float
    busy_s: float
    """All of it: user, system, interrupts, and what a hypervisor gave to others (steal)."""
    idle_s: float
    steal_s: float
    arm_s: float
    own_s: float
    """Hotlap itself."""


@dataclass(frozen=True)
class Load:
    """Average cores between two looks."""

    others: float
    """Taken by neither the arm nor Hotlap; stolen time included."""
    idle: float
    steal: float


def parse_stat(text: str, cpus: set[int], ticks_per_s: int) -> tuple[float, float, float]:
    """(busy, idle, steal) seconds over ``cpus``, from /proc/stat."""
    busy = idle = steal = 0
    for line in text.splitlines():
        name, *values = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cpus:
            user, nice, system, idling, iowait, irq, softirq, stolen = (int(v) for v in (values + ["0"] * 8)[:8])
            busy += user + nice + system + irq + softirq + stolen
            idle += idling + iowait
            steal += stolen
    return busy / ticks_per_s, idle / ticks_per_s, steal / ticks_per_s


def look(arm_s: float) -> CpuLook | None:
    """Look now; ``arm_s`` is the arm's CPU time so far. None where there is no /proc/stat."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            text = file.read()
    except OSError:
        return None
    cpus = os.sched_getaffinity(0)
    busy, idle, steal = parse_stat(text, cpus, os.sysconf("SC_CLK_TCK"))
    times = os.times()
    return CpuLook(time.monotonic(), busy, idle, steal, arm_s, times.user + times.system)


def between(first: CpuLook | None, last: CpuLook | None) -> Load | None:
    """Average load between two looks; None when it is not known."""
    if first is None or last is None or last.t_s <= first.t_s:
        return None
    wall = last.t_s - first.t_s
    ours = max(0.0, last.arm_s - first.arm_s) + (last.own_s - first.own_s)
    others = max(0.0, last.busy_s - first.busy_s - ours) / wall
    return Load(others, max(0.0, last.idle_s - first.idle_s) / wall, (last.steal_s - first.steal_s) / wall)
