"""Files that were asked to be on disk and are not yet: one thread sees to it soon."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from typing import Any

from hotlap.lever.script_errors import as_the_scripts

__all__ = ["OwedSyncs"]

Sync = Callable[[Any], None]

LOG_FROM = 3
"""The time from which a file that is forced again counts as a log."""


class OwedSyncs:
    """Syncs owed, by file; each is paid ``within_s`` seconds after it was asked for. Forked children owe nothing.

    A duplicate of the file's descriptor is kept until then, so that the script may close its own.
    """

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._pid = os.getpid()
        self._owed: dict[tuple[int, int], tuple[int, Sync]] = {}
        self._times: dict[tuple[int, int], int] = {}
        self._lock = threading.Lock()
        self._paying = threading.Lock()
        self._asked = threading.Event()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: OSError | None = None

    def owe(self, sync: Sync, fd: Any) -> bool:
        """Take over ``sync(fd)``; False: the caller has to call it (nothing was done).

        A file that is forced for the first or second time may be a checkpoint; one that comes again and again is a log.
        Raises the error of an earlier sync.
        """
        self._raise_error()
        if self._over.is_set() or os.getpid() != self._pid:
            return False
        try:
            number = fd if isinstance(fd, int) else fd.fileno()
            about = os.fstat(number)
        except (AttributeError, OSError, ValueError):  # sync itself says what is wrong with it
            return False
        if not stat.S_ISREG(about.st_mode):
            return False
        key = (about.st_dev, about.st_ino)
        times = self._times[key] = self._times.get(key, 0) + 1
        if times < LOG_FROM:
            return False
        with self._lock:
            if key not in self._owed:
                self._owed[key] = (os.dup(number), sync)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="hotlap-fsync", daemon=True)
                self._thread.start()
        self._asked.set()
        return True

    def pay(self) -> None:
        """Sync everything owed now; whoever calls waits for it. Costs a truth test when nothing is."""
        if not (self._owed or self._paying.locked()) or os.getpid() != self._pid:
            return
        with self._paying:
            with self._lock:
                owed, self._owed = self._owed, {}
            for fd, sync in owed.values():
                try:
                    sync(fd)
                except OSError as err:
                    self._error = as_the_scripts(err, "Of an earlier fsync, done in the background.")
                finally:
                    os.close(fd)

    def finish(self) -> None:
        """At the end of the script: pay, and end the thread."""
        if os.getpid() != self._pid:
            return
        self._over.set()
        self._asked.set()
        if self._thread is not None:
            self._thread.join()
        self.pay()
        self._raise_error()

    def _run(self) -> None:
        while not self._over.is_set():
            self._asked.wait()
            self._asked.clear()
            self._over.wait(self._within_s)
            self.pay()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error
