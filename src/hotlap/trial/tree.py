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
STOP_S = 1.0
"""Longest wait for a signal to take effect."""
ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, *ENDED)


def descendants(root: int) -> list[psutil.Process]:
    """All processes below ``root``, parents before their children; zombies left out."""
    try:
        parents = psutil.Process(root).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [process for process in parents if _status(process) not in ENDED]


def _status(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.NoSuchProcess:
        return str(psutil.STATUS_DEAD)


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
            break  # all that could start others have stopped
        for process in new:
            _signal(process, signal.SIGSTOP)
        stopped += new
        _wait_stopped(new)
    return stopped


def _wait_stopped(processes: list[psutil.Process]) -> None:
    """A signal takes effect when the process is next scheduled; one that waits for a disk takes longest."""
    until = time.monotonic() + STOP_S
    waiting = processes
    while waiting and time.monotonic() < until:
        waiting = [p for p in waiting if _status(p) not in STOPPED]
        if waiting:
            time.sleep(0.001)


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
