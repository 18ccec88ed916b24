"""Whether a signal was sent to Hotlap alone or to its whole process group, the script in it.

A system does not say. So a process that does nothing stands beside the script: what ends it, the script has got as well
(``timeout``, a shell's ``kill -- -PGID``, a job manager). Where it cannot be told, a signal counts as sent to one: one
that comes twice does less harm than one that is lost.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import subprocess
import threading
import time

__all__ = ["Group"]

WAIT_S = 0.1
"""What ended the one beside the script so long before or after Hotlap got a signal was the same sending."""
LOOK_S = 0.002
MOST = 100
"""The one beside is started again so often: somebody who ends it again and again means it."""


class Group:
    """The process beside the script, from :meth:`start` to :meth:`stop`; where there can be none, none."""

    def __init__(self) -> None:
        self._heard: dict[int, float] = {}
        """When a signal last ended the one beside."""
        self._beside: subprocess.Popen[bytes] | None = None
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hotlap-group", daemon=True)

    def start(self) -> None:
        """Call it when Hotlap's own handlers stand: what is ignored here is ignored by the one beside."""
        if hasattr(os, "getpgid") and shutil.which("cat") is not None:
            self._thread.start()

    def has(self, number: int, script: int) -> bool:
        """Whether the signal that has just come reaches the script, too, as it is in the group that it was sent to."""
        try:
            if not self._thread.is_alive() or os.getpgid(script) != os.getpgrp():
                return False
        except ProcessLookupError:
            return False
        until = time.monotonic() + WAIT_S
        while True:
            now = time.monotonic()
            if now - self._heard.get(number, -math.inf) <= WAIT_S:
                return True
            if now > until:
                return False
            time.sleep(LOOK_S)

    def stop(self) -> None:
        """The script has ended."""
        self._enough.set()
        if self._beside is not None:
            self._beside.kill()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _watch(self) -> None:
        for _ in range(MOST):
            with contextlib.suppress(OSError):  # no process to be had: nothing is told, all is passed on
                # it reads what nobody writes, and so ends with Hotlap, also where that is killed
                self._beside = subprocess.Popen(
                    ["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            beside = self._beside
            if beside is None or self._enough.is_set():
                break
            code = beside.wait()
            if code < 0:
                self._heard[-code] = time.monotonic()
            if self._enough.is_set() or code >= 0:
                break
        if self._beside is not None:
            self._beside.kill()
            self._beside.wait()
