"""One packing of a folder at a time, and nothing half written left in it by one that was killed."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hotlap.pack.manifest import LEFT_OUT, MANIFEST, WORK
from hotlap.records.errors import HotlapError

__all__ = ["locked"]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One packing per folder at a time; the lock goes with its process, however that ends."""
    work = folder / WORK
    path = work / "lock"
    lock = _taken(path, folder)
    try:
        names = (".part-*.tmp", f".{MANIFEST}.*.tmp", f".{LEFT_OUT}.*.tmp", f"{WORK}/.*.tmp")
        for left in (path for name in names for path in folder.glob(name)):  # of a packing that was killed
            left.unlink()
        yield
    finally:
        is_done = not any(p != path for p in work.iterdir())
        if is_done:
            path.unlink()
        lock.close()
        if is_done:
            with suppress(OSError):  # the next packing is there already
                work.rmdir()


def _taken(path: Path, folder: Path) -> IO[str]:
    """The lock, held. Who waited to open it while its holder removed it has a file that nobody else sees: again."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open(path, "w")  # noqa: SIM115 - held while packing
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(path)):
                return lock
        except FileNotFoundError:
            pass
        except OSError as err:
            lock.close()
            if err.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                what = f"{folder} cannot be locked for this packing: {err.strerror}."
                raise HotlapError(what, "Its file system has no locks: pack onto another one, and copy it.") from err
            raise HotlapError(f"{folder} is being packed by another process.", "Wait until it is done.") from err
        lock.close()
