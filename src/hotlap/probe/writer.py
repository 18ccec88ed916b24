"""Rows to disk: a daemon thread that appends JSON lines about once a second, and the plain appender under it.

Each flush is one ``os.write`` to a file opened for appending, so a process that is killed loses what was not flushed
and nothing else. A disk that is full silences the file and counts what was lost; the training goes on.
"""

from __future__ import annotations

import json
import os
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterable
from typing import Any

from hotlap.probe.recorder import Recorder, StepRow
from hotlap.probe.step_rows import StepRows, forget_losses

__all__ = ["Appender", "Writer", "free_path", "row_text"]

Tidy = Callable[[int], None]

LAST_WAIT_S = 1.0
"""How long the end of the process may wait for the device to end the last steps: their losses are lost after that."""
JOIN_S = 5.0
"""How long it waits for the writer's thread, whose disk may hang."""


def row_text(row: Any) -> str:
    """One row as a JSON line. Numbers that JSON cannot say (NaN, infinity) become null."""
    data = {"k": type(row).__name__.lower(), **vars(row)}
    try:
        return json.dumps(data, allow_nan=False, default=str) + "\n"
    except ValueError:
        return json.dumps(_finite(data), default=str) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


def free_path(folder: str, name: str) -> str:
    """A file that is not there: an earlier process of the run may have had the same number, or been this one before it
    began anew with exec."""
    path = os.path.join(folder, f"{name}.jsonl")
    return path if not os.path.exists(path) else os.path.join(folder, f"{name}-{time.time_ns()}.jsonl")


class Appender:
    """A file that is only ever appended to, made at the first write. Never raises for a disk that refuses."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lost = 0
        """Writes that the disk refused."""
        self.failure = ""
        self._fd: int | None = None
        self._pid = os.getpid()
        self._torn = False

    def write(self, text: str) -> bool:
        """Append the lines; whether the first of them is in the file. In a forked child: no, it is the parent's."""
        if not text or os.getpid() != self._pid:
            return False
        data = text.encode("utf-8", "backslashreplace")
        if self._torn:
            data = b"\n" + data
        try:
            if self._fd is None:
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
                self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            if self._torn:
                self.count_lost("a row was cut off by a full disk")
                return False
            written = os.write(self._fd, data)
            if written == len(data):
                return True
            return self._cut(written, data)
        except OSError as err:
            self.count_lost(err.strerror or str(err))
            return False

    def _cut(self, written: int, data: bytes) -> bool:
        """The disk took a part: end the file at the last whole line, so that readers see no torn row in the middle.

        Returns whether there is one.
        """
        assert self._fd is not None
        whole = data.rfind(b"\n", 0, written) + 1
        size = os.fstat(self._fd).st_size
        try:
            os.ftruncate(self._fd, size - (written - whole))
        except OSError:
            self._torn = True
        self.count_lost("the disk is full")
        return whole > 0

    def count_lost(self, why: str) -> None:
        """Something could not be written."""
        self.lost += 1
        self.failure = why

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None and os.getpid() == self._pid:
            os.close(self._fd)
        self._fd = None


class Writer:
    """Takes the recorder's rows every ``flush_s`` and appends them; ``header`` makes the first row."""

    def __init__(
        self,
        rec: Recorder,
        path: str,
        flush_s: float,
        header: Callable[[], Any],
        before_flush: Iterable[Tidy] = (),
        steps: StepRows | None = None,
    ) -> None:
        self.rec = rec
        self.file = Appender(path)
        self.steps = steps or StepRows()
        self.before_flush: list[Tidy] = list(before_flush)
        """Called with the monotonic ns before each flush, on the writer's thread: they emit rows of their own."""
        self._flush_s = max(0.05, flush_s)
        self._header = header
        self._begun = False
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._thread: tuple[int, int] | None = None
        """Its process, and its number there."""

    def start(self) -> None:
        """Begin writing: the first sign of training was seen. A script that waits for all threads to end
        (``threading.enumerate()``) must not find this one."""
        if self._thread is None:
            self._thread = os.getpid(), start_new_thread(self._run, ())

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._flush_s):
                try:
                    self.flush()
                except Exception as err:  # a row that cannot be said (an object of the script's in it) is lost
                    self.file.count_lost(f"{type(err).__name__}: {err}")
        finally:
            self._ended.set()

    def flush(self) -> None:
        """Write what has come since the last flush. Nothing is written before :meth:`start`.

        Steps that the device has not ended are left for the next time: their losses could not be read without a wait.
        """
        with self._lock:
            self._flush(rest=False)

    def _flush(self, rest: bool) -> None:
        """Write; the ``rest`` is all that there is, whether or not the device has ended it."""
        if not self.rec.started:
            return
        lines = self._head()
        with self.rec.asking:
            pending, now = None if rest else self.rec.pending(), time.monotonic_ns()
            for tidy in self.before_flush:
                tidy(now)
            lines.extend(self._step_lines(len(self.rec.rows), pending))
        told = self.file.write("".join(lines))
        self._begun = self._begun or told

    def _head(self) -> list[str]:
        """The header, until it is in the file."""
        return [] if self._begun else [row_text(self._header())]

    def _step_lines(self, n_rows: int, pending: int | None) -> list[str]:
        rec = self.rec
        rows = rec.rows[:n_rows]
        del rec.rows[:n_rows]
        steps = rec.steps[:]
        steps = steps[: len(steps) - len(_behind(steps, pending))]
        del rec.steps[: len(steps)]
        return [row_text(row) for row in rows] + self.steps.text(steps)

    def close(self, last: Any) -> None:
        """Stop the thread, write everything with ``last`` at the end, close the file."""
        self._stop.set()
        if self._thread is not None and self._thread[0] == os.getpid() and self._thread[1] != threading.get_ident():
            self._ended.wait(JOIN_S)
        if not self._lock.acquire(timeout=LAST_WAIT_S):
            self.file.count_lost("the writer was still busy when the process ended")
            return
        try:
            self._flush_rest()
            if self.rec.started:
                self.file.write("".join([*self._head(), *self.steps.rest(), row_text(last)]))
        finally:
            self._lock.release()
        self.file.close()

    def _flush_rest(self) -> None:
        until = time.monotonic() + LAST_WAIT_S
        while (behind := _behind(self.rec.steps, self.rec.pending())) and time.monotonic() < until:
            time.sleep(0.01)
        forget_losses(behind)
        self._flush(rest=True)


def _behind(steps: list[StepRow], pending: int | None) -> list[StepRow]:
    """Of these the steps that the device may not have ended."""
    return [] if pending is None else [row for row in steps if row[0] + row[9] > pending]
