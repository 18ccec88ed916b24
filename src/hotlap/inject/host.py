"""A guest ends with Hotlap, where it lives on the same machine: no training is left running unseen."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from _thread import start_new_thread
from os import kill  # the plain one: checkpoint-async lets os.kill wait for its saves
from pathlib import Path

__all__ = ["CHECK_S", "end_with", "let_go", "whereabouts"]

CHECK_S = 1.0
"""How often a guest looks."""
_LET_GO = "let-go"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def whereabouts() -> str:
    """The same for two processes that know each other by their numbers, and for no others: the machine since its start,
    and the namespace of process numbers. Empty where it cannot be told."""
    try:
        return f"{_BOOT_ID.read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux, or no /proc
        return ""


def let_go(timelines: str) -> None:
    """The command has come to its own end: what it left running on purpose outlives Hotlap, as it outlives the command.

    Without a place for the mark such a process ends with Hotlap.
    """
    with contextlib.suppress(OSError):
        (Path(timelines) / _LET_GO).touch()


def end_with(pid: int, where: str, timelines: str) -> None:
    """End this process when ``pid``, which lives ``where``, is gone without having let go (:func:`let_go`).

    Of a process elsewhere (another node of a cluster, another container) nothing can be seen, and nothing follows.
    """
    if where != whereabouts():
        return

    def look() -> None:
        while True:
            time.sleep(CHECK_S)
            try:
                kill(pid, 0)
            except ProcessLookupError:
                if (Path(timelines) / _LET_GO).exists():
                    return
                kill(os.getpid(), signal.SIGKILL)
            except PermissionError:  # it lives, under another user
                continue

    start_new_thread(look, ())  # a script that waits for all threads to end (threading.enumerate()) must not find it
