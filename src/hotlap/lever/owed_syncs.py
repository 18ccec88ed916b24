"""Files that were asked to be on disk and are not yet: one thread sees to it soon."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Callable
from typing import Any

from hotlap.lever.script_errors import as_the_scripts

__all__ = ["OwedSyncs"]

Sync = Callable[[Any], None]
_File = tuple[int, int]
"""Device and inode."""

LOG_FROM = 3
"""The time from which a file that is forced again counts as a log."""
MOST_KEPT = 32
"""Logs that are open here, too, at a time."""


class OwedSyncs:
    """Syncs owed, by file; each is paid ``within_s`` seconds after it was asked for. Forked children owe nothing.

    Each file is opened once more, so that the script may close its own descriptor, and stays open to the end of the
    process: to close it would let go of the record locks that the script holds on it (fcntl(2)). A duplicate of the
    script's descriptor would keep its flock(2) when the script closes it.
    """

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._pid = os.getpid()
        self._owed: dict[_File, Sync] = {}
        self._kept: dict[_File, int] = {}
        """Descriptors of our own."""
        self._times: dict[_File, int] = {}
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
            if not self._keep(key, number):
                return False
            self._owed.setdefault(key, sync)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="hotlap-fsync", daemon=True)
                self._thread.start()
        self._asked.set()
        return True

    def _keep(self, key: _File, number: int) -> bool:
        """Have the file open; False: it cannot be opened again, or there are too many. Called with the lock held."""
        if key not in self._kept and len(self._kept) < MOST_KEPT:
            try:
                import fcntl  # there is none on Windows

                how = fcntl.fcntl(number, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND)
                self._kept[key] = os.open(f"/proc/self/fd/{number}", how)
            except (ImportError, OSError):
                return False
        return key in self._kept

    def _let_go_of_removed(self) -> None:
        """Close files that are gone: their room on the disk is free again, and nobody can lock them by a name."""
        for key, fd in [(key, fd) for key, fd in self._kept.items() if key not in self._owed]:
            with contextlib.suppress(OSError):  # a script may close all descriptors
                if os.fstat(fd).st_nlink == 0:
                    os.close(self._kept.pop(key))

    def pay(self) -> None:
        """Sync everything owed now; whoever calls waits for it. Costs a truth test when nothing is."""
        if not (self._owed or self._paying.locked()) or os.getpid() != self._pid:
            return
        with self._paying:
            with self._lock:
                owed, self._owed = self._owed, {}
            for key, sync in owed.items():
                try:
                    sync(self._kept[key])
                except OSError as err:
                    self._error = as_the_scripts(err, "Of an earlier fsync, done in the background.")
            with self._lock:
                self._let_go_of_removed()

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
