"""A process tree: freezing, thawing and ending all of it, daemons included (the launcher adopts orphans)."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import psutil

__all__ = ["cpu_s", "descendants", "freeze", "kill", "thaw"]

ROUNDS = 50
"""How often new processes are looked for before giving up; each round sees what the one before had started."""


def descendants(root: int) -> list[psutil.Process]:
    """All processes below ``root``, parents before their children; zombies left out."""
    try:
        parents = psutil.Process(root).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [process for process in parents if _alive(process)]


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD))
    except psutil.NoSuchProcess:
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, number)


def freeze(root: int, spare: int) -> list[psutil.Process]:
    """Stop everything below ``root`` but its first ``spare`` generations of launchers; returns what was stopped.

    Parents first: the training process stops before its loader workers can fall behind or run ahead of it.
    """
    stopped: list[psutil.Process] = []
    for _ in range(ROUNDS):
        new = [p for p in descendants(root)[spare:] if p not in stopped]
        if not new:
            break
        for process in new:
            _signal(process, signal.SIGSTOP)
        stopped += new
    return stopped


def thaw(stopped: list[psutil.Process]) -> None:
    """Continue what was stopped, children first."""
    for process in reversed(stopped):
        _signal(process, signal.SIGCONT)


def kill(root: int, patience_s: float = 10.0) -> None:
    """End the whole tree by SIGKILL, frozen or not, and wait until it is gone; ``root`` itself goes last."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        living = descendants(root)
        if not living:
            break
        for process in living:
            _signal(process, signal.SIGKILL)
        psutil.wait_procs(living, timeout=0.2)
    with contextlib.suppress(ProcessLookupError):
        os.kill(root, signal.SIGKILL)


def cpu_s(root: int) -> float:
    """CPU seconds of ``root``, all living processes below it and the children that they have waited for."""
    total = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in [psutil.Process(root), *psutil.Process(root).children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])
    return total
