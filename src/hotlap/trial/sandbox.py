"""Where a trial's writes go: a throw-away layer over the file system, so that nothing of the user's is changed.

Linux only (private mount namespace and overlay mounts, as root or in a user namespace). ``layers.py`` says how,
``enter.py`` is the launcher. Known limits: ``/dev/shm`` and ``/run`` stay real; in a user namespace renaming a folder
that was there before fails with EXDEV as across file systems; files are written to memory, so that saving looks as fast
as memory is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from hotlap.records.errors import HotlapError

__all__ = ["FAILED", "LAUNCHER", "SAYS", "Sandbox", "available", "launcher", "remove_layers"]

LAUNCHER = Path(__file__).with_name("enter.py")
FAILED = 125
"""Exit status of a launcher that could not make the sandbox."""
SAYS = "hotlap sandbox: "
"""How the launcher's own lines begin."""
MEMORY_FRAC = 0.25
"""Share of the available memory that a trial's writes may take."""
MOST_BYTES = 8 << 30
TRY_S = 20.0
ALLOW = (
    "In a container, start it with `--cap-add SYS_ADMIN --security-opt apparmor=unconfined` (or `--privileged`); on "
    "Ubuntu, `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`."
)
HINT = (
    f"{ALLOW} Or pass `--no-sandbox`: then trials run your script for real, several times over, and whatever it writes "
    "(checkpoints, logs) is really written."
)


def launcher(mode: str, options: Iterable[str], command: list[str]) -> list[str]:
    """Command line of the launcher: isolated, without site, so that the user's environment does nothing in it."""
    host = f"--host={os.getpid()}"
    return [sys.executable, "-I", "-S", str(LAUNCHER), "--mode", mode, host, *options, "--", *command]


def _try(mode: str, options: list[str]) -> str | None:
    """Make a sandbox around nothing; None when that worked, else the reason."""
    try:
        done = subprocess.run(
            launcher(mode, options, []), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TRY_S
        )
    except (OSError, subprocess.TimeoutExpired) as err:
        return str(err)
    if done.returncode == 0:
        return None
    lines = [line.removeprefix(SAYS) for line in done.stderr.splitlines() if line.startswith(SAYS)]
    return lines[-1] if lines else f"the launcher ended with {done.returncode}: {done.stderr.strip()[-300:]}"


@cache
def _tried() -> tuple[str, str]:
    """(mode, why not), tried in a child process from the root folder's point of view."""
    if not sys.platform.startswith("linux"):
        return "none", f"{sys.platform} has no overlay mounts"
    why = ""
    for mode in ("root", "userns") if os.geteuid() == 0 else ("userns",):
        failed = _try(mode, ["--no-folders"])
        if failed is None:
            return mode, ""
        why = why or failed
    return "none", why


def available() -> str:
    """``root``, ``userns`` or ``none``: which sandbox works here, by really trying once."""
    return _tried()[0]


@dataclass(frozen=True)
class Sandbox:
    """A way to run commands whose writes are thrown away. Every command gets layers of its own."""

    mode: str
    keep: tuple[Path, ...]
    """Paths that stay real: what is written there is really written."""
    scratch: Path | None
    """Folder for the layers, on a file system of its own; None: memory."""
    size_bytes: int
    """Bound of the layers in memory."""

    @staticmethod
    def plan(keep: list[Path], scratch: Path | None = None) -> Sandbox:
        """Check that a sandbox can be made for the present folder, home and temporary folder.

        ``scratch``: a folder of this process' own, in which each command gets its layers.

        Raises HotlapError that says why not and what to do.
        """
        mode, why = _tried()
        if mode == "none":
            raise HotlapError(f"Trials cannot be sandboxed here ({why}).", HINT)
        for path in keep:
            if not path.exists():
                raise HotlapError(f"{path} is to be kept out of the sandbox, but does not exist.")
        size = int(min(MEMORY_FRAC * psutil.virtual_memory().available, MOST_BYTES))
        folder = scratch.resolve() if scratch is not None else None
        sandbox = Sandbox(mode, tuple(path.resolve() for path in keep), folder, size)
        layers = sandbox.new_layers()
        why_not = _try(mode, sandbox._options([], layers))
        remove_layers(layers)
        if why_not is not None:
            raise HotlapError(f"Trials cannot be sandboxed here: {why_not}.", HINT)
        return sandbox

    def _options(self, command: list[str], layers: Path | None) -> list[str]:
        options = [f"--keep={path}" for path in self.keep] + [f"--size={self.size_bytes}"]
        scripts = [word for word in command[:8] if word.endswith((".py", ".sh")) and os.path.isfile(word)]
        options += [f"--need={os.path.dirname(os.path.realpath(word))}" for word in scripts]
        return options if layers is None else [*options, f"--scratch={layers}"]

    def new_layers(self) -> Path | None:
        """A folder for the layers of one command, for :func:`remove_layers` at its end; None: they lie in memory."""
        return None if self.scratch is None else Path(tempfile.mkdtemp(prefix="layers-", dir=self.scratch))

    def wrap(
        self, command: list[str], replaced: Mapping[Path, Path] | None = None, layers: Path | None = None
    ) -> list[str]:
        """Command line that runs ``command`` in ``layers`` of its own; its argv, folder and environment stay.

        ``replaced``: files and, for each, another one whose content the command finds in its place.
        """
        options = self._options(command, layers)
        for file, new in (replaced or {}).items():
            options += ["--replace", str(file), str(new)]
        return launcher(self.mode, options, command)


def remove_layers(layers: Path | None) -> None:
    """Remove what an ended command left in a folder (layers in memory vanish by themselves)."""
    if layers is None:
        return
    for work in layers.glob("*w/*"):
        work.chmod(0o700)  # the kernel makes it with no permissions at all
    shutil.rmtree(layers)
