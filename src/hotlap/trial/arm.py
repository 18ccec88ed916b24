"""An arm: one live process tree of the user's command, which can be frozen, thawed, followed and ended."""

from __future__ import annotations

import atexit
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil

from hotlap.records.errors import HotlapError
from hotlap.records.timeline import Timeline, training_timeline
from hotlap.records.trials import NO_STEP
from hotlap.trial import reasons, tree
from hotlap.trial.sandbox import Sandbox, launcher, remove_layers
from hotlap.trial.tail import FileTail, Tail
from hotlap.trial.terminal import Terminal

__all__ = ["Arm", "ArmSpec", "stop_all"]

_LIVE: weakref.WeakSet[Arm] = weakref.WeakSet()


@dataclass(frozen=True)
class ArmSpec:
    """What to run and where its traces go."""

    name: str
    """What the user calls this arm: ``baseline``, or the lever on trial."""
    command: list[str]
    env: dict[str, str]
    """The whole environment, the injected part included."""
    timeline_dir: Path
    cwd: Path
    sandbox: Sandbox | None
    output: Path
    """File for stdout and stderr."""
    lever: str | None = None
    """Id of the move on trial: when its mark says that nothing was changed, the trial ends as ``no-effect``."""
    waits_for: frozenset[str] = frozenset()
    """Kinds of events (``validation``, ``checkpoint``) before which that move can have changed nothing."""
    replaced: Mapping[Path, Path] = field(default_factory=dict)
    """Files that have another one's content in the sandbox (a configuration with another value)."""


@dataclass(eq=False)
class Arm:
    """One arm. :meth:`stop` must be called in the end; leaving Python calls it for all."""

    spec: ArmSpec
    frozen: bool = False
    started_at: float | None = None
    """``time.monotonic()`` of the (last) start."""
    thaws: list[tuple[int, int | None]] = field(default_factory=list)
    """(thaw, freeze) in monotonic ns, oldest first; the last one is open while the arm runs."""
    runs: list[FileTail] = field(default_factory=list)
    """Timelines of earlier starts."""
    _process: subprocess.Popen[bytes] | None = None
    _stopped: list[psutil.Process] = field(default_factory=list)
    _tail: Tail | None = None
    _kills_before: int = 0
    _layers: Path | None = None
    _terminal: Terminal | None = None

    def start(self) -> None:
        """Launch the command (again, when it has ended). stdin has nothing to read, output goes to the file."""
        if self.alive:
            raise HotlapError(f"The arm {self.spec.name} is running already.")
        self._set_aside()
        self._close_turn()
        command = self.spec.command
        if self.spec.sandbox is not None:
            self._remove_layers()
            self._layers = self.spec.sandbox.new_layers()
            command = self.spec.sandbox.wrap(command, self.spec.replaced, self._layers)
        elif sys.platform.startswith("linux"):
            command = launcher("plain", [], command)
        self._kills_before = reasons.oom_kills()
        self._tail = Tail(self.spec.timeline_dir)
        try:
            self.spec.timeline_dir.mkdir(parents=True, exist_ok=True)
            with open(self.spec.output, "ab") as output:
                self._process = self._launch(command, output)
        except OSError as err:
            raise HotlapError(
                f"Cannot start {self.spec.command[0]}: {err}.", "Is there space in the run folder?"
            ) from err
        _LIVE.add(self)
        self.frozen = False
        self.started_at = time.monotonic()
        self.thaws.append((time.monotonic_ns(), None))

    def _launch(self, command: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        self._hang_up()
        self._terminal = Terminal()
        return subprocess.Popen(
            command, stdin=self._terminal.stdin, stdout=output, stderr=subprocess.STDOUT,
            cwd=self.spec.cwd, env=self.spec.env, start_new_session=True,
        )  # fmt: skip

    def _set_aside(self) -> None:
        """Move an earlier start's timelines away: process numbers repeat in a sandbox, and file names with them."""
        if self._tail is None:
            return
        self._tail.poll()
        self.runs += self._tail.trainers
        older = self.spec.timeline_dir / f"run-{len(list(self.spec.timeline_dir.glob('run-*'))) + 1}"
        older.mkdir(parents=True)  # the folder may have been deleted meanwhile
        for path in self.spec.timeline_dir.glob("*.jsonl"):
            path.rename(older / path.name)

    def _close_turn(self) -> None:
        if self.thaws and self.thaws[-1][1] is None:
            self.thaws[-1] = (self.thaws[-1][0], time.monotonic_ns())

    @property
    def alive(self) -> bool:
        """Whether the command is still there, frozen or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process that the last start made: the command's, or the sandbox's launcher. HotlapError before that."""
        if self._process is None:
            raise HotlapError(f"The arm {self.spec.name} was never started.")
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The command's exit status, negative for a signal; None before its end."""
        return None if self._process is None else self._process.poll()

    @property
    def _spare(self) -> int:
        return 1 if self.spec.sandbox is not None else 0  # the sandbox's init need not be stopped

    def freeze(self) -> None:
        """Stop every process of the tree where it is."""
        if self.frozen or self._process is None or not self.alive:
            return
        root = self._process.pid
        if sys.platform.startswith("linux"):
            self._stopped = tree.freeze(root, self._spare)
        else:
            own = psutil.Process(root)
            own.suspend()
            self._stopped = [own, *tree.freeze(root, 0)]
        self.frozen = True
        self._close_turn()

    def thaw(self) -> None:
        """Let the tree go on."""
        if not self.frozen:
            return
        self.thaws.append((time.monotonic_ns(), None))
        tree.thaw(self._stopped)
        self._stopped = []
        self.frozen = False

    def stop(self) -> None:
        """End the whole tree at once, frozen or not, and wait until it is gone."""
        if self._process is not None and self._process.poll() is None:
            tree.kill(self._process.pid)
            self._process.wait()
        self._close_turn()
        self.frozen = False
        self._remove_layers()
        self._hang_up()
        _LIVE.discard(self)

    def _hang_up(self) -> None:
        if self._terminal is not None:
            self._terminal.close()
            self._terminal = None

    def _remove_layers(self) -> None:
        remove_layers(self._layers)
        self._layers = None

    def failure(self, context: str = "") -> str:
        """Why the arm ended, in one sentence; ``context`` says what it was doing (``while warming up``)."""
        code = self.exit_code
        if code is None:
            why = "no progress"
        elif code == 0:
            steps = self.steps_done()
            why = f"script ended after {steps} steps" if steps else f"script {NO_STEP}"
        else:
            memory_kill = reasons.oom_kills() > self._kills_before
            sandboxed = self.spec.sandbox is not None
            text = reasons.tail_of(self.spec.output)
            full = reasons.disk_full(self.spec.timeline_dir)
            why = reasons.explain(code, text, sandboxed=sandboxed, memory_kill=memory_kill, disk_full=full)
        return f"{why} ({context})" if context else why

    def cpu_s(self) -> float:
        """CPU seconds that the tree has used so far."""
        return 0.0 if self._process is None or not self.alive else tree.cpu_s(self._process.pid)

    def poll(self) -> FileTail | None:
        """Follow the timelines; the training process' rows so far, None before its first step."""
        if self._tail is None:
            return None
        self._tail.poll()
        return self._tail.trainer

    def tails(self) -> list[FileTail]:
        """All timelines of this arm that are being followed (ranks, launcher processes that imported torch)."""
        return [] if self._tail is None else list(self._tail.files.values())

    def trainers(self) -> list[FileTail]:
        """Timelines of the training processes, oldest start first."""
        self.poll()
        return self.runs if self._tail is None else [*self.runs, *self._tail.trainers]

    def steps_done(self) -> int:
        """Steps of the present start, of all processes that trained one after the other."""
        self.poll()
        return 0 if self._tail is None else sum(trainer.n_steps for trainer in self._tail.trainers)

    def read(self) -> Timeline | None:
        """The whole timeline of the present start, as far as it was written; None before the first step."""
        return training_timeline(self.spec.timeline_dir)


def stop_all() -> None:
    """End every arm that is still there."""
    for arm in list(_LIVE):
        arm.stop()


atexit.register(stop_all)
