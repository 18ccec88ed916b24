"""Inside a loader worker: a file of its own, with load rows about once a second and stacks of the data set's work.

There is no writer thread here: rows are written by the loop itself, after a batch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from hotlap.probe.load_time import LoadMeter, MeterHolder
from hotlap.probe.loader import LOADER_ENV
from hotlap.probe.recorder import DATA_WAIT, Recorder
from hotlap.probe.stacks import StackSampler
from hotlap.probe.writer import Appender, free_path, row_text
from hotlap.records.call import Call
from hotlap.records.rows import End, Header, Note

__all__ = ["WorkerSetup", "set_up", "worker_loop"]

MAX_FILES = 400
"""Worker files of one trainer that hold rows; later workers of a very long run write nothing."""

_WORKER_ID = 10
"""Position of ``worker_id`` among the arguments of torch's worker loop."""


class WorkerSetup:
    """What a worker needs of the process it was forked or spawned from."""

    def __init__(
        self,
        call: Call,
        rec: Recorder,
        holder: MeterHolder,
        original: Callable[..., Any],
        header: Callable[..., Header],
        quiet: Callable[[], None],
    ) -> None:
        self.call = call
        self.rec = rec
        self.holder = holder
        self.original = original
        self.header = header
        self.quiet = quiet
        """Silences the probes that came along with the fork."""


_setup: WorkerSetup | None = None


def set_up(setup: WorkerSetup | None) -> None:
    """Called when the probes are installed, or taken away (None)."""
    global _setup
    _setup = setup


def worker_loop(*args: Any, **kwargs: Any) -> Any:
    """Stands in for ``torch.utils.data._utils.worker._worker_loop``; same arguments. It is pickled by the name of that
    (spawn), which a process without Hotlap knows, too."""
    setup = _setup
    if setup is None:
        from torch.utils.data._utils import worker

        return worker._worker_loop(*args, **kwargs)
    setup.quiet()
    worker_id = args[_WORKER_ID] if len(args) > _WORKER_ID else kwargs.get("worker_id", 0)
    if _files(setup.call.timeline_dir) >= MAX_FILES:
        return setup.original(*args, **kwargs)
    book = _WorkerBook(setup, int(worker_id))
    try:
        return setup.original(*args, **kwargs)
    finally:
        book.close()


worker_loop.__module__, worker_loop.__qualname__ = "torch.utils.data._utils.worker", "_worker_loop"


def _files(folder: str) -> int:
    try:
        return sum(name.startswith("worker-") for name in os.listdir(folder))
    except OSError:
        return 0


class _WorkerBook:
    """The worker's rows on their way to its file."""

    def __init__(self, setup: WorkerSetup, worker_id: int) -> None:
        rec = setup.rec
        rec.rows = []
        rec.frames.forget(rec.emit)
        rec.frames.base = worker_loop.__code__
        self._rec = rec
        self._file = Appender(free_path(setup.call.timeline_dir, f"worker-{os.getpid()}"))
        self._header = setup.header("worker", worker_id)
        self._begun = False
        validation = os.environ.get(LOADER_ENV) == "validation"
        self._meter = LoadMeter(rec.emit, lambda: validation, setup.call.hits_most_s)
        self._meter.after_row = self.write
        setup.holder.meter = self._meter
        hz = min(setup.call.stack_hz, 50.0)
        self._stacks = StackSampler(
            hz, rec.frames, lambda frame: DATA_WAIT, rec.emit, self._note, setup.call.hits_most_s
        )
        self._stacks.wanted = lambda: bool(self._meter.fetching)
        self._stacks.arm()

    def _note(self, what: str, why: str) -> None:
        self._rec.emit(Note(what, why))

    def write(self, last: bool = False) -> None:
        self._stacks.write(time.monotonic_ns(), last)
        rows, self._rec.rows = self._rec.rows, []
        lines = [] if self._begun else [row_text(self._header)]
        told = self._file.write("".join(lines + [row_text(row) for row in rows]))
        self._begun = self._begun or told

    def close(self) -> None:
        self._stacks.retire()
        if self._meter.batches or self._begun:
            self._meter.write()
            self._rec.emit(End(time.monotonic_ns(), "exit"))
            self.write(last=True)
        self._file.close()
