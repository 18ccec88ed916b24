"""A folder in memory for what the processes of one command share, and the end of folders whose owner was killed.

Memory that a kill -9 leaves in /dev/shm stays taken until the machine restarts, so whoever makes a folder removes
those that have no owner any more. An owner holds a lock on the file ``owner`` in its folder for as long as it lives; a
lock, unlike a process id, cannot be somebody else's by now.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from hotlap.records.errors import HotlapError

__all__ = ["launched_here", "make_scratch", "remove_scratch"]

PER_MACHINE = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE")
"""Variables in which launchers (torchrun, Open MPI, MPICH, srun) tell how many processes they start on a machine. What
srun tells is the tasks of each: ``4(x2),3``."""

_PREFIX = "hotlap-"
_OWNER = "owner"
_held: dict[Path, IO[bytes]] = {}
"""Locks of this process' folders; closing one would give it away."""


def make_scratch(base: Path | None = None) -> Path:
    """A new empty folder in ``base``, or in memory where there is some to write to.

    Raises HotlapError when nothing can be written there.
    """
    if base is None:
        memory = Path("/dev/shm")
        base = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    elif not base.is_dir() or not os.access(base, os.W_OK):
        what = f"The scratch folder {base} does not exist or cannot be written."
        raise HotlapError(what, "Make it, or name another with --scratch.")
    _remove_orphans(base)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    except OSError as err:  # full, or no place for files (/proc), though its permissions allow it
        what = f"No scratch folder can be made in {base}: {err.strerror}."
        raise HotlapError(what, "Name another with --scratch, or free some space there.") from err
    part = folder / f".{_OWNER}"
    owner = open(part, "wb")  # noqa: SIM115 - held until remove_scratch, or the end of the process
    _locked(owner)
    os.replace(part, folder / _OWNER)  # so no folder is ever seen with a lock that nobody holds yet
    _held[folder] = owner
    return folder


def launched_here(environment: Mapping[str, str] = os.environ) -> int:
    """How many processes a launcher has started on this machine as it has started this one: each makes a scratch of its
    own."""
    counts = [re.findall(r"(\d+)(?:\(x\d+\))?", environment.get(name, "")) for name in PER_MACHINE]
    return max([1, *(int(count) for found in counts for count in found)])


def remove_scratch(folder: Path) -> None:
    """Remove a folder that :func:`make_scratch` made here."""
    _remove(folder)
    owner = _held.pop(folder, None)
    if owner is not None:
        owner.close()


def _remove(folder: Path) -> None:
    """Also of what an overlay left: the kernel makes its working folders without any permission."""
    for parent, names, _ in os.walk(folder):
        for path in (os.path.join(parent, name) for name in names):
            if not os.path.islink(path) and not os.access(path, os.R_OK | os.X_OK):
                os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _locked(file: IO[bytes]) -> bool:
    """Take the lock, unless another process has it. Elsewhere than on POSIX nobody gets one."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_orphans(base: Path) -> None:
    for folder in base.glob(f"{_PREFIX}*"):
        try:
            with open(folder / _OWNER, "rb") as owner:
                if _locked(owner):
                    _remove(folder)
        except OSError:
            continue  # another user's, or one that is being made or removed at this moment
