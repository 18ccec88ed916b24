"""Run the user's command as they would, with the door open: their stdin, stdout, signals and exit code."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

from hotlap.inject.group import Group
from hotlap.records.errors import EXIT_USAGE, HotlapError

__all__ = ["Signalled", "check_command", "module_of", "name_of", "run_script", "script_of"]

PR_SET_PDEATHSIG = 1
"""linux/prctl.h"""


def _those_here(*names: str) -> tuple[signal.Signals, ...]:
    return tuple(signal.Signals[name] for name in names if hasattr(signal, name))  # Windows has few of them


PASSED_ON = _those_here("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
"""What is sent to Hotlap and meant for the script: job managers ask for a checkpoint with SIGUSR1."""
THE_TERMINALS = _those_here("SIGINT", "SIGQUIT")
"""Ctrl-C and Ctrl-\\: the terminal sends these to the script itself. One that was sent to Hotlap alone looks the same
from here as one sent to both, and passing that on would interrupt the script twice."""


class Signalled(int):
    """The exit code of what a signal ended: 128 + its number, as shells have it. Of a script that exits with such a
    number by itself it is a plain int."""

    @property
    def number(self) -> int:
        """The signal's."""
        return int(self) - 128


def check_command(command: Sequence[str]) -> list[str]:
    """The command to run, or HotlapError saying what is wrong with it: empty, not found, not executable."""
    if not command:
        raise HotlapError("There is no command after `--`.", "Write: hotlap … -- python train.py …", EXIT_USAGE)
    program = command[0]
    found = shutil.which(program)
    if found is None:
        path = Path(program)
        if path.is_file() and path.suffix == ".py":
            raise HotlapError(f"{program} is not executable.", f"Write: hotlap … -- python {program} …", EXIT_USAGE)
        raise HotlapError(f"The command {program!r} was not found.", "Is it spelled right, and on PATH?", EXIT_USAGE)
    script = script_of(command)
    if script is not None and not Path(script).is_file() and not (Path(script) / "__main__.py").is_file():
        kind = "a folder without __main__.py" if Path(script).is_dir() else "not there"
        raise HotlapError(
            f"The script {script!r} is {kind} (looked in {os.getcwd()}).", "Check the path after `--`.", EXIT_USAGE
        )
    return list(command)


def script_of(command: Sequence[str]) -> str | None:
    """The script among the arguments of a ``python`` command (``-m`` and ``-c`` have none)."""
    return _what_runs(command)[0]


def module_of(command: Sequence[str]) -> str | None:
    """The module that a ``python -m`` command runs."""
    return _what_runs(command)[1]


def name_of(command: Sequence[str]) -> str:
    """What to call it: python's script or module, else the first file of code that a launcher is given (``torchrun
    train.py``, ``env A=1 python train.py``, ``bash run.sh``), else the program."""
    named = (word for word in command if word.endswith((".py", ".sh")))
    return script_of(command) or module_of(command) or next(named, command[0])


def _what_runs(command: Sequence[str]) -> tuple[str | None, str | None]:
    """Script and module. Short options may stand together (``-um pkg``), as python reads them."""
    if not Path(command[0]).name.startswith("python"):
        return None, None
    rest = iter(command[1:])
    for argument in rest:
        if argument == "-":
            return None, None
        if argument == "--":
            return next(rest, None), None
        if not argument.startswith("-"):
            return argument, None
        if argument == "--check-hash-based-pycs":
            next(rest, None)
        for at, letter in enumerate(argument[1:], 2) if not argument.startswith("--") else ():
            if letter == "m":
                return None, argument[at:] or next(rest, None)
            if letter == "c":
                return None, None
            if letter in "WX":  # its value: what is left of the word, or the next one
                if at == len(argument):
                    next(rest, None)
                break
    return None, None


def _die_with(parent: int) -> None:
    """In the child, before the command: the kernel ends it when Hotlap ends, also when that was a moment ago."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def run_script(command: Sequence[str], env: Mapping[str, str], on_start: Callable[[int], None] | None = None) -> int:
    """Run ``command`` to its end and return its exit code (128 + n when signal n ended it).

    :data:`PASSED_ON` is passed on to the script unless it was sent to both, :data:`THE_TERMINALS` reaches it by itself.
    Hotlap stays until the script has ended. ``on_start`` is told the script's process id. HotlapError when the command
    cannot be executed.
    """
    early: list[int] = []
    group = Group()
    # from before the start: a signal may come in the script's first moment. What is ignored (nohup) stays so for it
    heard = [n for n in (*PASSED_ON, *THE_TERMINALS) if signal.getsignal(n) != signal.SIG_IGN]
    before = {n: signal.signal(n, lambda number, _: early.append(number)) for n in heard}
    try:
        process = _started(command, env)

        def pass_on(number: int, frame: FrameType | None) -> None:
            if not group.has(number, process.pid):
                process.send_signal(number)

        for number in (*PASSED_ON, *THE_TERMINALS):
            handler = signal.signal(number, pass_on if number in PASSED_ON else signal.SIG_IGN)
            before.setdefault(number, handler)  # of those heard, what was there before is known
        group.start()
        for came in early:
            if came in PASSED_ON:
                process.send_signal(came)
        if on_start is not None:
            on_start(process.pid)
        code = process.wait()
    finally:
        group.stop()
        for number, old in before.items():
            signal.signal(number, old)
    return code if code >= 0 else Signalled(128 - code)


def _started(command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    own = os.getpid()
    try:
        # what the shell opened for the script (`<(…)`, `5< file`) stays open; Python makes none of ours inheritable
        return subprocess.Popen(list(command), env=dict(env), preexec_fn=lambda: _die_with(own), close_fds=False)
    except OSError as err:
        hint = "It has no first line `#!…`: name what runs it, e.g. `bash` or `python`, before it."
        raise HotlapError(
            f"The command {command[0]!r} cannot be executed: {err.strerror}.",
            hint if err.errno == errno.ENOEXEC else "",
            EXIT_USAGE,
        ) from err
