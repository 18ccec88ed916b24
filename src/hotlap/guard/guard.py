"""The thread in Hotlap's own process that looks at the run every few seconds. The script knows nothing of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hotlap.diagnose.surroundings import Around
from hotlap.guard.alarms import Alarms
from hotlap.guard.export import Export
from hotlap.guard.follow import Follower
from hotlap.guard.hook import Hook
from hotlap.guard.look_around import Surroundings
from hotlap.guard.metrics import MetricsServer
from hotlap.guard.status import Earlier, Status, read_status
from hotlap.inject.door import BOOTSTRAP
from hotlap.records.errors import HotlapError
from hotlap.records.guard import Alarm, GuardRecord
from hotlap.records.machine import Machine
from hotlap.records.run_folder import RunFolder
from hotlap.records.timeline import Timeline
from hotlap.report.guard_words import alarm_line, over_line
from hotlap.trial.collect import annotate
from hotlap.trial.shut_out import ShutOut

__all__ = ["Guard", "Wishes"]

LOOK_S = 5.0
STATUS_S = 60.0
MOST_AROUND = 20_000
"""Looks at the machine that are kept: a day's."""

Say = Callable[[str], None]


@dataclass
class Wishes:
    """What the user asked for."""

    say: Say
    """Prints one line for the user."""
    status: Callable[[Status], None] | None = None
    """Prints the status line, once a minute; None: nobody wants it."""
    hook: Hook | None = None
    metrics: Callable[[Callable[[], Status]], MetricsServer] | None = None
    """Makes the server, given how to ask for the status."""
    export: bool = False
    """Hand the figures to the tracker that the script uses."""
    earlier: Earlier = field(default_factory=Earlier)
    look_s: float = LOOK_S


class Guard:
    """Watches one run. ``start`` when the script has been started, ``stop`` when it has ended."""

    def __init__(self, folder: RunFolder, machine: Machine, wishes: Wishes) -> None:
        self.status = Status()
        self.notes: list[str] = []
        self._folder = folder
        self._wishes = wishes
        self._follower = Follower(folder.timeline_dir("run"))
        self._alarms = Alarms(machine, prepare=self._prepare)
        self._around: list[Around] = []
        self._surroundings: Surroundings | None = None
        self._shut_out = ShutOut(BOOTSTRAP, folder.timeline_dir("run"))
        self._root = 0
        self._enough = threading.Event()
        self._thread: threading.Thread | None = None
        self._failed = False
        self._pid = 0
        self._told: list[str] = []
        self._seen = Status()
        """The last status of steps: what is recorded."""
        self._written = GuardRecord(0, 0, 0.0)
        self._to_hook: list[tuple[Alarm, str]] = []
        """Drifts that the hook was not started for yet."""
        self._refused: set[str] = set()
        self._export = Export(folder.timeline_dir("run")) if wishes.export else None
        self._server = wishes.metrics(lambda: self.status) if wishes.metrics is not None else None

    @property
    def address(self) -> str | None:
        """Where metrics are served."""
        return self._server.address if self._server is not None else None

    def start(self, pid: int) -> None:
        """The script runs, as process ``pid``."""
        self._surroundings, self._root = Surroundings(pid), pid
        if self._server is not None:
            self._server.start()
        self._thread = threading.Thread(target=self._run, name="hotlap-guard", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The script has ended: look a last time, write what was seen."""
        self._enough.set()
        hook = self._wishes.hook
        try:
            if self._thread is not None:
                self._thread.join()
                if not self._failed:
                    self._guarded(self._look)
                self._guarded(self._keep)
            for line in hook.finish() if hook is not None else []:
                self._wishes.say(line)
        finally:  # also when Ctrl-C ends the waiting
            if hook is not None:
                hook.stop()
            if self._server is not None:
                self._server.stop()

    def _run(self) -> None:
        told = time.monotonic()
        while not self._failed and not self._enough.wait(self._wishes.look_s):
            self._guarded(self._look)
            if self._wishes.status is not None and time.monotonic() - told >= STATUS_S:
                told = time.monotonic()
                self._wishes.status(self.status)

    def _guarded(self, work: Callable[[], None]) -> None:
        """A guard that fails says so once and looks no more; the script goes on as if it had never been there."""
        try:
            work()
        except Exception as err:  # whatever it is, the script's run and its exit code are not to suffer from it
            self._failed = True
            self.status = Status(watched=False)  # nothing that is served is to be taken for how the run goes now
            self.notes.append(f"The guard gave up: {err}")
            self._wishes.say(f"the guard gave up, the run goes on: {type(err).__name__}: {err}")

    def _try(self, what: str, work: Callable[[], None]) -> bool:
        """What the system may refuse for a while (a full disk): told the first time, and tried again at later looks."""
        try:
            work()
        except (HotlapError, OSError) as err:
            if what not in self._refused:
                self._refused.add(what)
                self._wishes.say(f"{what} failed, the run goes on: {err}")
            return False
        return True

    def _look(self) -> None:
        around = self._surroundings.look(self._pid) if self._surroundings is not None else None
        if around is not None:
            self._around.append(around)
            del self._around[:-MOST_AROUND]
        news = self._follower.poll()
        timeline = self._follower.training
        if timeline is not None and news:
            if timeline.header.pid != self._pid:
                self._pid = timeline.header.pid
                self._alarms.follow(self._pid)
            self._tell(timeline)
        for why in self._shut_out.look(self._root) if timeline is None else []:  # now: it may train for days
            self._wishes.say(f"not watched: {why}")
        self.status = read_status(
            timeline, self._follower.samples, self._wishes.earlier, self._alarms.current, len(self._alarms.alarms),
            time.monotonic_ns(),
        )  # fmt: skip
        self._seen = self.status if self.status.steps else self._seen
        if (self._alarms.alarms, self._alarms.current) != (self._written.alarms, self._written.current):
            self._keep()
        export, hook = self._export, self._wishes.hook
        if export is not None:
            self._try("giving figures to trackers", lambda: export.write(self.status, self._pid, self._told))
        if hook is not None:
            while self._to_hook and self._try("--on-drift", lambda: hook.start(*self._to_hook[0])):
                del self._to_hook[0]
            for line in hook.ended():
                self._wishes.say(line)

    def _tell(self, timeline: Timeline) -> None:
        news = self._alarms.look(timeline, self._around)
        for alarm in news.alarms:
            line = alarm_line(alarm, str(Path.cwd()))
            self._told.append(line)
            self._wishes.say(line)
            if self._wishes.hook is not None:
                self._to_hook.append((alarm, line))
        for alarm in news.over:
            self._told.append(over_line(alarm))
            self._wishes.say(self._told[-1])

    def _prepare(self, timeline: Timeline) -> None:
        """Before a cause is named: read the other ranks, and the user's lines."""
        while self._follower.poll(every_rank=True):
            pass  # a look reads so many bytes at most, and the others may be hours behind
        annotate(self._follower.training or timeline)

    def _keep(self) -> None:
        self._try("writing guard.json", self._write)

    def _write(self) -> None:
        seen, current = self._seen, None if self._failed else self._alarms.current
        if seen.steps or self.notes:
            record = GuardRecord(
                seen.steps, seen.samples, seen.train_s, list(self._alarms.alarms), list(self.notes), current
            )
            self._folder.write("guard.json", record)
            self._written = record
