"""Runs an animal bare and under ``hotlap diagnose``, and says what differs."""

from __future__ import annotations

import fnmatch
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.zoo.catalogue import Animal

__all__ = ["Seen", "compare", "diagnose_command", "differences", "missing", "run", "under_diagnose"]

FOLDER = Path(__file__).parent / "animals"
LIMIT_S = 120.0


@dataclass(frozen=True)
class Seen:
    """What a run left: what it printed, its exit code, and its files by their contents."""

    stdout: bytes
    stderr: bytes
    exit_code: int
    files: dict[str, str]
    """Path under the working folder to the SHA-256 of its bytes."""


def missing(animal: Animal) -> str | None:
    """Which module the animal lacks here, if any."""
    return next((name for name in animal.needs if importlib.util.find_spec(name) is None), None)


def diagnose_command(runs: Path, command: tuple[str, ...]) -> list[str]:
    """The command line that watches ``command`` and keeps its documents under ``runs``."""
    return [sys.executable, "-m", "hotlap", "diagnose", "--no-confirm", "--runs", str(runs), "--", *command]


def _hear_interrupts() -> None:
    """What a shell starts in its background ignores SIGINT, and so would the animal."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(animal: Animal, folder: Path, runs: Path | None = None) -> Seen:
    """Run the animal in ``folder`` (made here, a copy of ``animals/``), under ``hotlap diagnose`` if ``runs`` is given.

    Raises subprocess.TimeoutExpired after two minutes.
    """
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    env = {key: value for key, value in os.environ.items() if not key.startswith(("HOTLAP", "PYTEST"))}
    env["PATH"] = str(Path(sys.executable).parent) + os.pathsep + env.get("PATH", "")
    env |= {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **animal.env}
    command = list(animal.command) if runs is None else diagnose_command(runs, animal.command)
    given = animal.stdin or ""
    if animal.stdin is not None and (FOLDER / animal.stdin.partition("\n")[0]).is_file():
        given = (FOLDER / animal.stdin).read_text()
    done = subprocess.run(
        command, cwd=folder, env=env, input=given.encode(), capture_output=True, timeout=LIMIT_S, check=False,
        preexec_fn=_hear_interrupts,
    )  # fmt: skip
    here = str(folder).encode()
    return Seen(done.stdout.replace(here, b"."), done.stderr.replace(here, b"."), done.returncode, _files(folder))


def _files(folder: Path) -> dict[str, str]:
    out = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and "__pycache__" not in path.parts:
            out[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return out


def differences(animal: Animal, bare: Seen, under: Seen) -> list[str]:
    """What the user would notice: stdout, its own stderr, exit code, files (losses among them). Empty: nothing."""
    out = []
    if under.stdout != bare.stdout:
        out.append(f"stdout: {_first_difference(bare.stdout, under.stdout)}")
    if not animal.loose_stderr and not under.stderr.startswith(bare.stderr):
        out.append(f"stderr: {_first_difference(bare.stderr, under.stderr)}")
    expected = bare.exit_code if animal.watchable else bare.exit_code or 1
    if _shell_code(under.exit_code) != _shell_code(expected):
        out.append(f"exit code: {bare.exit_code} became {under.exit_code}")
    for name in sorted(bare.files.keys() | under.files.keys()):
        if any(fnmatch.fnmatch(name, pattern) for pattern in animal.volatile) and name in bare.files:
            if name not in under.files:
                out.append(f"file {name}: is missing")
        elif bare.files.get(name) != under.files.get(name):
            what = "differs" if name in bare.files and name in under.files else "is new or missing"
            out.append(f"file {name}: {what}")
    return out


def _shell_code(code: int) -> int:
    """A death by signal n as a shell tells it, 128 + n."""
    return code if code >= 0 else 128 - code


def _first_difference(bare: bytes, under: bytes) -> str:
    a, b = bare.splitlines(), under.splitlines()
    for left, right in zip(a, b, strict=False):
        if left != right:
            return f"{left!r} became {right!r}"
    extra = (b[len(a) :] or a[len(b) :])[:3]
    return f"{len(a)} lines became {len(b)}: {extra!r}"


def under_diagnose(animal: Animal, folder: Path) -> Seen:
    """The animal under ``hotlap diagnose``; its working folder and its documents lie in ``folder``."""
    return run(animal, folder / "under", folder / "runs")


def compare(animal: Animal, folder: Path) -> list[str]:
    """Differences between bare and watched. Raises AssertionError when the animal itself is not as its entry says."""
    bare = run(animal, folder / "bare")
    assert bare.exit_code == animal.exit_code, f"{animal.name} bare: {bare.exit_code}\n{bare.stderr.decode()[-2000:]}"
    return differences(animal, bare, under_diagnose(animal, folder))
