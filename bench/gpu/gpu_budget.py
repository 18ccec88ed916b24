"""Parts of the GPU bench: each is a command with a share of the time, cut off at it, and told when it fails."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

__all__ = ["Part", "limit_s", "play", "play_all", "shown"]

LEAST_S = 15.0
"""A part with less than this is not begun: it could not even start Python and the device."""
TOLD_LINES = 60
LIMIT, FIGURES = "{limit_s}", "{json}"
"""Stand in a part's command for its seconds, and for the file in which it leaves its figures."""

Read = Callable[[Path], Any]


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Part:
    """One question."""

    name: str
    command: tuple[str, ...]
    share: float
    """Of the time, by weight."""
    read: Read = _json
    """Makes the figures of the file."""


def limit_s(left_s: float, part: Part, later: Sequence[Part]) -> float:
    """Its share of the time that is left: what earlier parts did not need goes to all that follow."""
    return left_s * part.share / (part.share + sum(other.share for other in later))


def _filled(command: Sequence[str], limit: float, figures: Path) -> list[str]:
    return [word.replace(LIMIT, f"{limit:.0f}").replace(FIGURES, str(figures)) for word in command]


def play(part: Part, limit: float, env: dict[str, str], cwd: Path) -> dict[str, Any]:
    """Run it. ``status``: done, failed, cut off, no time. What it printed is kept, whatever happened."""
    if limit < LEAST_S:
        return {"status": "no time", "why": f"{max(0.0, limit):.0f} s were left, {LEAST_S:.0f} are the least"}
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures"
        # what it leaves itself (compiled code, data) stays out of the repository; both streams in the order of writing
        command = _filled(part.command, 0.9 * limit, figures)
        with subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", start_new_session=True) as process:  # fmt: skip
            cut = False
            try:
                out, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                cut = True
                _end(process)
                out, _ = process.communicate()
            finally:
                _end(process)  # workers that outlive it
        found: dict[str, Any] = {"seconds": time.monotonic() - begun, "limit_s": limit, "exit_code": process.returncode,
                                 "told": out.splitlines()[-TOLD_LINES:]}  # fmt: skip
        return found | _outcome(part, process.returncode, cut, figures, limit)


def _end(process: subprocess.Popen[str]) -> None:
    """With all that it began, in whatever session: what outlives it holds the GPU while the next part is measured."""
    begun: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        begun = psutil.Process(process.pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for child in begun:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


def _outcome(part: Part, code: int, cut: bool, figures: Path, limit: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    try:
        found["figures"] = part.read(figures)
    except (OSError, ValueError) as err:
        missing = f"it left no figures that can be read: {type(err).__name__}: {err}"
        if not cut and code == 0:
            return {"status": "failed", "why": missing}
    if cut:
        return {**found, "status": "cut off", "why": f"it was not done after {limit:.0f} s"}
    if code != 0:
        return {**found, "status": "failed", "why": f"it ended with {code}"}
    return {**found, "status": "done"}


def play_all(parts: Sequence[Part], budget_s: float, env: dict[str, str], cwd: Path, say: Callable[[str], None],
             clock: Callable[[], float] = time.monotonic) -> dict[str, dict[str, Any]]:  # fmt: skip
    """All parts one after the other, within ``budget_s``."""
    end = clock() + budget_s
    results = {}
    for at, part in enumerate(parts):
        limit = limit_s(end - clock(), part, parts[at + 1 :])
        say(f"{part.name}: at most {max(0.0, limit):.0f} s")
        results[part.name] = play(part, limit, env, cwd)
        say(shown(part.name, results[part.name]))
    return results


def shown(name: str, result: dict[str, Any]) -> str:
    """A line for people."""
    seconds = f" after {result['seconds']:.0f} s" if "seconds" in result else ""
    why = f": {result['why']}" if "why" in result else ""
    return f"{name}: {result['status']}{seconds}{why}"
