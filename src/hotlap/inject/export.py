"""The guard's figures into the tracker that the script uses: carried over by a thread of our own, every few seconds.

The host computes them and leaves them beside the timeline (``guard/export.py``). A tracker is known once the script has
imported it. One that refuses is left alone from then on, and noted in the timeline: its run is the script's.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from hotlap.inject.on_import import forget, on_import
from hotlap.inject.trackers import mlflow, tensorboard, wandb
from hotlap.inject.trackers.contract import Tracker
from hotlap.probe.undo import Undo
from hotlap.records.codec import loads
from hotlap.records.figures import NAME, Figures

__all__ = ["Exporter"]

LOOK_S = 2.0
"""How often the file's time is read; the guard replaces it every ten seconds."""
END_S = 2.0
"""Longest wait, at the end of the process, for figures that are being handed over."""

Make = Callable[[Any, Undo], Tracker]
_KNOWN: tuple[tuple[tuple[str, ...], Make], ...] = (
    (tensorboard.MODULES, tensorboard.TensorBoard),
    (wandb.MODULES, wandb.WandB),
    (mlflow.MODULES, mlflow.MLflow),
)


class _Carrier(threading.Thread):
    """A script that joins all threads (``threading.enumerate()``) does not wait for this one, which ends after it.

    It has to be a Thread to be found: trackers ask for the current one, and an unknown one becomes a dummy that raises
    when it is joined.
    """

    def join(self, timeout: float | None = None) -> None:
        """Return at once."""

    def wait(self, timeout_s: float) -> None:
        """What ``join`` otherwise is."""
        super().join(timeout_s)


class _Told(Protocol):
    """What the export says in the timeline."""

    def set_mark(self, kind: str, id: str, state: str, count: int, why: str = "") -> None: ...


class Exporter:
    """Installed before the probes: its replacements are theirs to time, and lie inside of theirs."""

    def __init__(self, folder: str, undo: Undo) -> None:
        self.timeline: _Told | None = None
        self._path = Path(folder) / NAME
        self._undo = undo
        self._trackers: list[Tracker] = []
        self._read_ns = 0
        self._pid = 0
        self._enough = threading.Event()
        self._thread: _Carrier | None = None
        for modules, make in _KNOWN:
            for module in modules:
                callback = functools.partial(self._imported, make)
                undo.add(functools.partial(forget, callback))
                on_import(module, callback)

    def _imported(self, make: Make, module: ModuleType) -> None:
        try:
            self._trackers.append(make(module, self._undo))
        except Exception as err:  # another version of the tracker; the script's import is not to fail
            self._tell(module.__name__, "failed", 0, err)

    def wake(self, _step: int = 0) -> None:
        """Training goes on in this process: have a thread here, where there is something to do for it."""
        if not self._trackers or self._pid == os.getpid():
            return
        self._pid, self._read_ns = os.getpid(), 0
        self._enough = threading.Event()
        self._thread = _Carrier(target=self._run, args=(self._enough,), name="hotlap-export", daemon=True)
        self._thread.start()

    def _run(self, enough: threading.Event) -> None:
        while self._trackers and not enough.wait(LOOK_S):
            self.look()

    def look(self) -> None:
        """Hand over what is new, if this is the process that it is about."""
        try:
            figures = self._news()
        except Exception as err:
            self._trackers.clear()
            self._tell(NAME, "failed", 0, err)
            return
        if figures is None or figures.pid != os.getpid():
            return
        for tracker in list(self._trackers):
            first = not tracker.given
            try:
                tracker.give(figures)
            except Exception as err:  # whatever a tracker, its server or its disk may raise
                self._trackers.remove(tracker)
                self._tell(tracker.name, "failed", tracker.given, err)
                continue
            if first and tracker.given:
                self._tell(tracker.name, "applied", tracker.given)

    def _news(self) -> Figures | None:
        try:
            now_ns = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        if now_ns == self._read_ns:
            return None
        self._read_ns = now_ns
        return loads(Figures, self._path.read_text(encoding="utf-8"), str(self._path))

    def _tell(self, name: str, state: str, count: int, err: Exception | None = None) -> None:
        if self.timeline is not None:
            why = "" if err is None else f"{type(err).__name__}: {err}"[:400]
            self.timeline.set_mark("export", name, state, count, why)

    def stop(self) -> None:
        """At the end of the process: let what is being handed over arrive, and say how often that was."""
        self._enough.set()
        if self._thread is not None and self._pid == os.getpid() and self._thread is not threading.current_thread():
            self._thread.wait(END_S)
        for tracker in self._trackers:
            if tracker.given:
                self._tell(tracker.name, "applied", tracker.given)
