"""Files that appear whole: written in a folder beside, by the same name, then renamed."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable

__all__ = ["is_replaceable", "write_beside", "write_whole"]


def is_replaceable(path: str) -> bool:
    """Whether another file may take this real path: nothing is there, or a plain file under this one name that may be
    written to (no device, no pipe, no file that has a second name)."""
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return os.access(os.path.dirname(path), os.W_OK | os.X_OK)  # else the script hears of it at once
    except OSError:
        return False
    return stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1 and os.access(path, os.W_OK)


def write_whole(write: Callable[[str], object], path: str) -> None:
    """``write`` under a temporary folder, by the same file name (an archive holds it), then rename.

    Where that fails (no right to the folder, no room for two files) it is written in place, as the script would have.
    """
    try:
        write_beside(write, path)
    except Exception:
        write(path)


def write_beside(write: Callable[[str], object], path: str) -> None:
    """The same, and its error is raised: a file that is there stays as it is then. Owner and permissions stay."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    os.mkdir(temporary)
    try:
        written = os.path.join(temporary, name)
        write(written)
        if os.path.exists(path):
            facts = os.stat(path)
            with contextlib.suppress(OSError):  # only root gives a file to another user
                os.chown(written, facts.st_uid, facts.st_gid)
            shutil.copymode(path, written)
        os.replace(written, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
