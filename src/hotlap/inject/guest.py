"""Inside the user's process: install the probes, pull the levers, take away what a throw-away trial asks for."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from hotlap.inject.ablation import ablate
from hotlap.inject.elementary import choose_kernels
from hotlap.inject.export import Exporter
from hotlap.inject.host import end_with
from hotlap.inject.last_errors import tell_at_exit
from hotlap.inject.offline import stay_offline
from hotlap.inject.on_import import forget, on_import
from hotlap.inject.replay import replay_indices
from hotlap.inject.seeding import offset_seeds
from hotlap.inject.target import GuestTarget
from hotlap.lever.registry import levers
from hotlap.probe.hook_points import HookPoints
from hotlap.probe.undo import Undo
from hotlap.probe.watch import Watch, install
from hotlap.records.call import ENV, Call
from hotlap.records.codec import loads

__all__ = ["Guest", "attach_call", "attach_from_environment", "is_attached"]


REPORT_AT = frozenset({12, 40, 120, 400})
"""Steps after which levers report; at the end of the process they do so anyway."""

_guest: Guest | None = None


class Guest:
    """What is attached in this process, so that it can be taken away again."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.points = HookPoints()
        self.undo = Undo()
        self.exporter = Exporter(call.timeline_dir, self.undo) if call.export else None
        try:
            self.watch: Watch = install(call, self.points, self.undo, self._on_import)
        except BaseException:
            self.undo.undo_all()
            raise
        if self.exporter is not None:
            self.exporter.timeline = self.watch
            self.watch.recorder.on_look.append(self.exporter.wake)
        self.targets: list[GuestTarget] = []

    def _on_import(self, module: str, callback: Callable[[ModuleType], None]) -> None:
        """Wait for a module no longer than the probes are here."""
        self.undo.add(lambda: forget(callback))
        on_import(module, callback)

    def pull_levers(self) -> None:
        """Apply the moves of the call, each in a target of its own: one that fails is undone alone."""
        known = levers()
        for move in self.call.moves:
            target = GuestTarget(move.lever, self.call, self.points, self.watch)
            self.targets.append(target)
            lever = known.get(move.lever)
            if lever is None:
                target.fail(KeyError(f"no lever {move.lever!r}"))
                continue
            try:
                lever.apply(target, move.setting)
            except Exception as err:
                target.fail(err)

        if self.targets:
            self.points.on_step_end.append(self._report)

    def _report(self, step: int) -> None:
        """Say now and then what each lever has changed, so that one without effect is known early."""
        if step in REPORT_AT:
            for target in self.targets:
                target.report()

    def detach(self) -> list[str]:
        """Put everything back. Returns what could not be, and why."""
        problems = [problem for target in reversed(self.targets) for problem in target.undo.undo_all()]
        return problems + self.undo.undo_all()

    def leave(self) -> list[str]:
        """Close the timeline and put everything back, in a process that goes on. Returns what could not be."""
        global _guest
        atexit.unregister(self.end)
        self.close()
        if _guest is self:
            _guest = None
        return self.detach()

    def end(self) -> None:
        """At the end of the process: close; what went wrong with the script's last work is told."""
        self.close()
        tell_at_exit([error for target in self.targets for error in target.last_errors])

    def close(self) -> None:
        """Finish what levers still write, say what each changed, close the timeline."""
        for target in self.targets:
            target.finish()
        if self.exporter is not None:
            self.exporter.stop()
        self.watch.close("exit")


def is_attached() -> bool:
    """Whether there is a guest in this process."""
    return _guest is not None


def attach_call(call: Call) -> Guest:
    """Attach to this process, in which torch has been imported."""
    global _guest
    if call.mode == "trial":
        choose_kernels(sys.modules["torch"])
    guest = _guest = Guest(call)
    if call.seed_offset or call.mode == "trial":
        offset_seeds(call.seed_offset, guest.undo, on_import)
    if call.offline:
        stay_offline(on_import)
    if call.replay_batches and call.mode == "trial":
        replay_indices(call.replay_batches, guest.points)
    for what in call.ablate:
        ablate(what, call, guest.points, guest.undo, guest.watch)
    guest.pull_levers()
    atexit.register(guest.end)
    if call.host_pid:
        end_with(call.host_pid, call.host_where, call.timeline_dir)
    return guest


def attach_from_environment() -> None:
    """Attach as the call file says; on failure undo everything and leave the reason beside the call file."""
    path = os.environ[ENV]
    try:
        attach_call(loads(Call, Path(path).read_text(), path))
    except Exception as err:
        if _guest is not None:
            _guest.detach()
        try:
            Path(f"{path}.{os.getpid()}.error").write_text(f"{type(err).__name__}: {err}\n")
        except OSError:  # no place to say it; the host sees that no timeline came
            return
