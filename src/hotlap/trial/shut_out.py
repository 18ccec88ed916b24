"""Python processes below a command that loaded torch, and that Hotlap did not come into: which, and why.

Hotlap comes in by the environment (inject/door): HOTLAP_CALL, and its folder on PYTHONPATH. A line of a shell script
such as ``PYTHONPATH=. python train.py`` takes the latter away, and nothing in that process can tell of it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import psutil

from hotlap.records.call import ENV
from hotlap.trial.tree import descendants

__all__ = ["ShutOut"]

PATH = "PYTHONPATH"
NAMED = 60
"""Characters of a command that are told."""
ALONE = {"I": "reads no environment", "E": "reads no environment", "S": "loads no sitecustomize"}
"""Options of Python that keep Hotlap out (docs.python.org/3/using/cmdline.html), and what it does with them."""
VALUED = "WX"
"""Short options that take the rest of their word for a value."""


class ShutOut:
    """Looks at the processes below one command. ``entrance``: the folder that Hotlap put on PYTHONPATH.

    What is found goes where processes that could not be attached to leave their errors, beside the timelines.
    """

    def __init__(self, entrance: Path, timelines: Path) -> None:
        self._entrance = str(entrance)
        self._timelines = timelines
        self._found: set[int] = set()

    def look(self, root: int) -> list[str]:
        """Why, of each such process that is new since the last look; nothing of those that came from one (workers)."""
        reasons = []
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in [psutil.Process(root), *descendants(root)]:
                with contextlib.suppress(psutil.Error, OSError):  # it ended meanwhile, or is another user's
                    why = self._why(process) if process.pid not in self._found else None
                    if why is None:
                        continue
                    self._found.add(process.pid)
                    if process.ppid() not in self._found:
                        reasons.append(why)
                        (self._timelines / f"call.json.{process.pid}.error").write_text(f"{why}\n")
        return reasons

    def _why(self, process: psutil.Process) -> str | None:
        if not Path(process.exe()).name.startswith("python"):  # by its name it is `torchrun`, or what torch calls it
            return None
        words, environment = process.cmdline(), process.environ()
        option = _keeps_out(words[1:])
        path = environment.get(PATH, "")
        let_in = ENV in environment and self._entrance in path.split(os.pathsep)
        if (let_in and option is None) or not _has_torch(process.pid):
            return None
        name = f"`{_shortened(' '.join([Path(words[0]).name, *words[1:]]))}`"
        if option is not None:
            return f"{name} {ALONE[option]}, by which Hotlap comes in: leave -{option} away"
        if ENV not in environment:
            return f"{name} was started without {ENV} and {PATH}, by which Hotlap comes in: pass both on"
        kept = f"{path}:${PATH}" if path else f"${PATH}"
        return f"{name} was started with {PATH}={path}; Hotlap comes in by what stood there: write {PATH}={kept}"


def _has_torch(pid: int) -> bool:
    return "/libtorch" in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")


def _keeps_out(words: Sequence[str]) -> str | None:
    """The option before the script, of those in :data:`ALONE`."""
    skip = False
    for word in words:
        if skip:
            skip = False
            continue
        if not word.startswith("-") or word.startswith("--") or word == "-":
            return None
        for at, letter in enumerate(word[1:], 2):
            if letter in ALONE:
                return letter
            if letter in "cm":
                return None
            if letter in VALUED:
                skip = at == len(word)
                break
    return None


def _shortened(text: str) -> str:
    return text if len(text) <= NAMED else text[: NAMED - 1] + "…"
