"""Watching a training: installs every probe in the user's process and owns what they record."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import time
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any

from hotlap.probe import (
    backends,
    backward,
    calls_per_line,
    checkpoint,
    costly_calls,
    denormals,
    detail,
    device_time,
    device_used,
    distributed,
    file_reads,
    forward,
    frozen,
    gc_pauses,
    interpreter_tools,
    load_time,
    loader_hooks,
    loader_made,
    logging_calls,
    no_optimizer,
    readers,
    recompiles,
    retained,
    settings,
    step,
    sync,
    validation,
    warning_places,
    worker,
    zero_grad,
)
from hotlap.probe.compiler_skip import skip_probes
from hotlap.probe.context import Context, OnImport
from hotlap.probe.file_header import header
from hotlap.probe.hook_points import HookPoints
from hotlap.probe.memory import Telemetry
from hotlap.probe.recorder import H2D, RESIDUAL, Recorder
from hotlap.probe.sites import Sites
from hotlap.probe.stacks import StackSampler
from hotlap.probe.step_rows import StepRows
from hotlap.probe.undo import Undo
from hotlap.probe.writer import Writer, free_path
from hotlap.records.call import Call
from hotlap.records.rows import End, Header, Mark, Note

__all__ = ["Watch", "install"]


class Watch:
    """What the injected side holds of the probes."""

    def __init__(self, call: Call, torch: Any) -> None:
        self.call = call
        self.recorder = rec = Recorder()
        self.sites = Sites(rec)
        self._torch = torch
        self._closed = False
        self._marks: dict[tuple[str, str], Mark] = {}
        self._writer = self._new_writer()
        self.stacks = StackSampler(call.stack_hz, rec.frames, self._phase_at, rec.emit, self.note, call.hits_most_s)
        rec.on_start = self._training_began

    def _new_writer(self) -> Writer:
        path = free_path(self.call.timeline_dir, str(os.getpid()))
        header = functools.partial(self.header, "train", None)
        return Writer(self.recorder, path, self.call.flush_s, header, steps=StepRows(self._unmeasured))

    def _unmeasured(self) -> frozenset[int]:
        """Asks whether the script uses CUDA by now; to ask whether there is a device would start the driver."""
        return frozenset() if self._torch.cuda.is_initialized() else frozenset({H2D})

    def _phase_at(self, frame: FrameType | None) -> int:
        rec = self.recorder
        phase = rec.hooks.phase(frame) if rec.brief and rec.cur is None else rec.cur
        return RESIDUAL if phase is None else phase

    @property
    def step_index(self) -> int:
        """Steps completed."""
        return self.recorder.step_index

    def set_mark(self, kind: str, id: str, state: str, count: int, why: str = "") -> None:
        """Write what a lever or an ablation did here; the last row of an id counts."""
        mark = Mark(kind, id, state, count, why)
        if self._marks.get((kind, id)) != mark:
            self._marks[kind, id] = mark
            self.recorder.emit(mark)

    def note(self, what: str, why: str) -> None:
        """Write that something was not watched, or stepped aside, and why."""
        self.recorder.emit(Note(what, why))

    def flush(self) -> None:
        """Write everything recorded so far."""
        self._writer.flush()

    def close(self, reason: str = "exit") -> None:
        """Write the rest and the end; later calls do nothing."""
        if self._closed:
            return
        self._closed = True
        self.stacks.retire()
        self.recorder.look_closely()  # writes the steps since the last row
        if self.recorder.started:
            now = time.monotonic_ns()
            self.stacks.write(now, last=True)
            self.sites.write(now, last=True)
            lost = self.recorder.dropped + self._writer.file.lost
            if lost:
                self.note(
                    "timeline", f"{lost} rows or writes were lost: {self._writer.file.failure or 'too many rows'}."
                )
        try:
            self._writer.close(End(time.monotonic_ns(), reason))
        except Exception as err:
            self._writer.file.count_lost(f"{type(err).__name__}: {err}")

    def begin(self) -> None:
        """The probes are installed: make the writer ready."""
        self._writer = self._new_writer()
        self._writer.before_flush += [self.stacks.write, self.sites.write, Telemetry(self.recorder, self._torch).write]

    def _training_began(self) -> None:
        if self._closed:  # a training that begins while the process ends
            return
        self._writer.start()
        self.stacks.arm()

    def after_fork(self) -> None:
        """In a forked child: another process, perhaps another training, never the parent's file."""
        self.stacks.forget()
        self.recorder.restart_in_child()
        for mark in self._marks.values():  # what was changed before the fork holds here too
            self.recorder.emit(mark)
        self._closed = False
        self.begin()

    def silence(self) -> None:
        """In a loader worker: nothing here trains; the worker keeps a file of its own."""
        self.recorder.thread = -1
        self.recorder.started = True

    def header(self, role: str, worker_id: int | None) -> Header:
        """First row of a file."""
        return header(self._torch, role, worker_id)


def _when_imported(module: str, callback: Callable[[Any], None]) -> None:
    """Stands in for the import hook where nobody gives one: only what is imported already is watched."""
    found = sys.modules.get(module)
    if found is not None:
        callback(found)


def install(call: Call, points: HookPoints, undo: Undo, on_import: OnImport | None = None) -> Watch:
    """Install every probe. Call it once per process, when torch has been imported, before the script uses it.

    ``on_import(module, callback)`` calls back once a module is imported; without it, only modules that are imported
    by now are watched. Everything is taken back by ``undo.undo_all()``.
    """
    import torch

    watch = Watch(call, torch)
    rec = watch.recorder
    rec.on_step_end = points.on_step_end
    ctx = Context(call, points, undo, rec, on_import or _when_imported, watch.note, torch)
    ctx.guard_imports()
    warning_places.install(undo)
    rec.on_failure = functools.partial(ctx.failed, "step")
    validations = validation.install(ctx)
    loads = loader_hooks.install(ctx, validations)
    loader_made.install(ctx, loads)
    validations.loads = loads
    forwards = forward.install(ctx, validations)
    forwards.loads = loads
    backward.install(ctx, validations, loads)
    rows = detail.install(ctx, loads)
    steps = step.install(ctx, validations, rows)
    no_optimizer.install(ctx, steps, validations, rows)
    zero_grad.install(ctx)
    holder = load_time.install(ctx)
    readers.install(ctx, holder)
    file_reads.install(ctx, holder)
    checkpoint.install(ctx, validations)
    logging_calls.install(ctx, watch.sites)
    sync.install(ctx, watch.sites)
    gc_pauses.install(ctx)
    costly_calls.install(ctx, watch.sites)
    said = settings.install(ctx, forwards)
    loads.on_kind.append(said.loader)
    steps.on_first_update.append(said.optimizer)
    for facts in (denormals, frozen, backends, device_used):
        steps.on_first_update.append(facts.install(ctx).optimizer)
    recompiles.install(ctx)
    calls_per_line.install(ctx, forwards)
    interpreter_tools.install(ctx, said.lines)
    distributed.install(ctx, watch.sites)
    retained.install(ctx)
    device_time.install(ctx)
    watch.stacks.install(undo)
    _install_worker(ctx, watch, holder)
    skip_probes(torch)
    watch.begin()
    _after_fork_in_child(watch, undo)
    atexit.register(watch.close, "exit")
    undo.add(lambda: atexit.unregister(watch.close))
    return watch


def _install_worker(ctx: Context, watch: Watch, holder: load_time.MeterHolder) -> None:
    module = ctx.torch.utils.data._utils.worker
    setup = worker.WorkerSetup(ctx.call, ctx.rec, holder, module._worker_loop, watch.header, watch.silence)
    worker.set_up(setup)
    ctx.undo.add(lambda: worker.set_up(None))
    ctx.undo.replace(module, "_worker_loop", worker.worker_loop)


def _after_fork_in_child(watch: Watch, undo: Undo) -> None:
    active = [True]
    thread = get_ident()

    def in_child() -> None:
        if active and thread:
            watch.after_fork()

    os.register_at_fork(after_in_child=in_child)
    undo.add(active.clear)
