"""Files changed all together or not at all, and only where git could bring the old ones back."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hotlap.records.errors import HotlapError

__all__ = ["check_clean", "write_all"]


def check_clean(path: Path) -> None:
    """HotlapError unless git tracks the file and it has no changes that are not committed."""
    real = path.resolve()  # what would be written; of a link git tells no more than where it leads
    how = ["--porcelain=v1", "--ignored", "--untracked-files=all"]  # the user's settings may hide untracked files
    command = ["git", "-C", str(real.parent), "status", *how, "--", real.name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise HotlapError(f"{path}: git is not here to tell whether the file is clean.", _FORCE) from None
    if done.returncode != 0:
        raise HotlapError(f"{path} is in no git repository, so nothing could bring the old text back.", _FORCE)
    state = done.stdout[:2]
    if state in ("??", "!!"):
        raise HotlapError(f"{path} is not tracked by git, so nothing could bring the old text back.", _FORCE)
    if state:
        raise HotlapError(f"{path} has changes that are not committed.", "Commit or stash them, or pass --force.")


_FORCE = "Save the diff and apply it yourself, or pass --force."


def write_all(files: Mapping[Path, tuple[bytes, bytes]]) -> None:
    """Write ``{path: (before, after)}``. HotlapError, and every file as it was, when one cannot be written.

    Each new text is complete beside its file before the first file is replaced; modes and owners stay.
    """
    staged: dict[Path, Path] = {}
    done: list[Path] = []
    try:
        for path, (before, after) in files.items():
            real = path.resolve()
            if real.read_bytes() != before:
                raise HotlapError(f"{path} changed while it was being patched.", "Try again.")
            staged[real] = _stage(real, after)
        for real, part in list(staged.items()):
            os.replace(part, real)
            done.append(real)
            del staged[real]
    except OSError as err:
        old = {path.resolve(): before for path, (before, _) in files.items()}
        for replaced in done:
            os.replace(_stage(replaced, old[replaced]), replaced)
        raise HotlapError(f"Cannot write {real}: {err.strerror}.", "No file was changed.") from err
    finally:
        for part in staged.values():
            part.unlink(missing_ok=True)


def _stage(real: Path, data: bytes) -> Path:
    """The new text complete beside its file, with the file's owner and mode. Nothing stays where that fails."""
    part = real.with_name(f".{real.name}.{os.getpid()}.tmp")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        state = real.stat()
        with contextlib.suppress(OSError):  # only root gives a file away; who writes another's file owns the new one
            os.chown(part, state.st_uid, state.st_gid)
        shutil.copymode(real, part)  # last: a new owner takes a set-user bit away
    except BaseException:
        with contextlib.suppress(OSError):  # what went wrong first is what is told
            part.unlink(missing_ok=True)
        raise
    return part
