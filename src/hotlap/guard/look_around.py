"""Looking at the machine from Hotlap's own process: whose the cores are, swap, quotas, the processor's own throttle."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hotlap.diagnose.surroundings import Around
from hotlap.trial.neighbours import CpuLook, between, look
from hotlap.trial.shut_out import ShutOut
from hotlap.trial.tree import cpu_s

__all__ = ["Surroundings", "looking_around"]

_VMSTAT = Path("/proc/vmstat")
_CGROUPS = Path("/sys/fs/cgroup")
_THERMAL = Path("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:  # another system, another container: then it is not measured
        return ""


def _fields(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _own_cgroup() -> Path:
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        if line.startswith("0::"):
            return _CGROUPS / line[3:].strip().lstrip("/") / "cpu.stat"
    return _CGROUPS / "cpu.stat"


def _rate(before: int | None, after: int | None, seconds: float) -> float | None:
    return None if before is None or after is None or seconds <= 0 else max(0, after - before) / seconds


def _waited_ns(process: int) -> int | None:
    """For how long its main thread was ready and had no core, so far (Linux, Documentation/scheduler/sched-stats)."""
    words = _text(Path(f"/proc/{process}/schedstat")).split() if process else []
    return int(words[1]) if len(words) == 3 and words[1].isdigit() else None


class Surroundings:
    """What changed since the last look. ``root`` is the process below which the script runs."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
        self._quota = _own_cgroup()
        self._trainer = 0
        self._last: tuple[float, CpuLook | None, dict[str, int | None]] | None = None

    def look(self, trainer: int = 0) -> Around | None:
        """The time since the last look; None at the first. ``trainer``: the process that trains, 0: not known yet."""
        now, cpu, counts = time.monotonic(), self._cpu(), self._counts(trainer)
        last, self._last = self._last, (now, cpu, counts)
        if last is None:
            return None
        seconds = now - last[0]
        load = between(last[1], cpu)
        rates = {name: _rate(last[2][name], counts[name], seconds) for name in counts}
        swapped, throttled, waited = rates["swapped"], rates["throttled_us"], rates["waited_ns"]
        if trainer != self._trainer:  # another process' count
            waited, self._trainer = None, trainer
        return Around(
            t=time.monotonic_ns(),
            others_cores=load.others if load is not None else None,
            waited_frac=None if waited is None else min(1.0, waited / 1e9),
            swapped_bytes_per_s=None if swapped is None else swapped * self._page,
            throttled_frac=None if throttled is None else throttled / 1e6,
            thermal_events_per_s=rates["thermal"],
        )

    def _cpu(self) -> CpuLook | None:
        return look(cpu_s(self._root)) if hasattr(os, "sched_getaffinity") else None

    def _counts(self, trainer: int) -> dict[str, int | None]:
        memory, quota, thermal = _fields(_text(_VMSTAT)), _fields(_text(self._quota)), _text(_THERMAL).strip()
        swapped = memory["pswpin"] + memory["pswpout"] if "pswpin" in memory and "pswpout" in memory else None
        return {
            "swapped": swapped,
            "waited_ns": _waited_ns(trainer),
            "throttled_us": quota.get("throttled_usec"),
            "thermal": int(thermal) if thermal.isdigit() else None,
        }


@contextmanager
def looking_around(shut_out: ShutOut, every_s: float = 1.0) -> Iterator[tuple[Callable[[int], None], list[Around]]]:
    """A function that is to be told the script's process id, and what is seen from then on until the context ends.

    ``shut_out`` is asked at the first look, the second, the fourth, the eighth …: it searches all processes.
    """
    seen: list[Around] = []
    enough = threading.Event()
    threads: list[threading.Thread] = []

    def start(pid: int) -> None:
        thread = threading.Thread(target=watch, args=(pid,), name="hotlap-surroundings", daemon=True)
        threads.append(thread)
        thread.start()

    def watch(pid: int) -> None:
        surroundings, looks = Surroundings(pid), 0
        while not enough.wait(every_s):
            around = surroundings.look()
            if around is not None:
                seen.append(around)
            looks += 1
            if looks & (looks - 1) == 0:
                shut_out.look(pid)

    try:
        yield start, seen
    finally:
        enough.set()
        for thread in threads:
            thread.join()
