"""Trainings that take turns of some seconds: each is frozen while another one runs.

A machine that others use changes its speed within a minute. Whole runs, one after the other, compare its minutes; turns
compare the trainings.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["Training"]

STEP = re.compile(r"Speed .* Step (\d+)/\d+ ")
PATIENCE_S = 600.0
"""Without a line of progress for so long it is given up."""


class Training:
    """A reference training in a process group of its own, and the lines of progress that it has printed."""

    def __init__(self, words: list[str], cwd: Path) -> None:
        self.words = words
        self._at: list[tuple[int, float]] = []
        """(step, when its line came)."""
        self._news = threading.Condition()
        self._process = subprocess.Popen(words, cwd=cwd, stdout=subprocess.PIPE, text=True, start_new_session=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if match := STEP.match(line):
                with self._news:
                    self._at.append((int(match[1]), time.monotonic()))
                    self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def run_to(self, step: int) -> None:
        """Run until the line of ``step`` has come, then freeze."""
        self._signal(signal.SIGCONT)
        self._wait(lambda: bool(self._at) and self._at[-1][0] >= step)
        self._signal(signal.SIGSTOP)

    def turn(self, steps: int) -> float:
        """Run until lines that are ``steps`` apart have come, the first of them after waking up; steps per second
        between them. Then freeze."""
        seen = len(self._at)
        self._signal(signal.SIGCONT)
        self._wait(lambda: len(self._at) > seen + 1 and self._at[-1][0] - self._at[seen][0] >= steps)
        self._signal(signal.SIGSTOP)
        (first, begun), (last, ended) = self._at[seen], self._at[-1]
        return (last - first) / (ended - begun)

    def _wait(self, enough: Callable[[], bool]) -> None:
        with self._news:
            while not enough():
                heard = len(self._at)
                self._news.wait(PATIENCE_S)
                if len(self._at) == heard and not enough():
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(1.0)
                    code = self._process.returncode
                    raise RuntimeError(f"{' '.join(self.words)} told no step any more (exit code {code})")

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def end(self) -> None:
        """Kill the whole group: its folder is thrown away."""
        self._signal(signal.SIGKILL)
        self._process.wait()
