"""How much memory the caches of a training take, counted over its processes, and what has to stay free beside them."""

from __future__ import annotations

import errno
import os

from hotlap.lever.opened_files import unnoted

__all__ = ["MEMORY_FILES", "UNIT", "Usage", "leaves_room", "units_of"]

UNIT = 4096
"""Bytes that one byte of the usage file stands for (a page, what the smallest file costs on tmpfs)."""
_BACK = ".back"
"""Ends the name of the file for what was given back."""
RESERVE_FRAC = 1 / 32
"""Of the memory, what stays free whatever a setting allows: the training may have grown since that was chosen."""
FILES_RESERVE_FRAC = 1 / 4
"""Of the memory's file system, what stays free for the batches that torch's own workers hand over there: without room
they end with a bus error."""
LOOK_UNITS = (16 << 20) // UNIT
"""Units between two looks at the free memory, each of which reads a few files."""
MEMORY_FILES = "/dev/shm/"


class Usage:
    """Bytes kept by all that count in one file, up to ``max_bytes``.

    The count is the size of an append-only file, less that of another for what was given back, so that no lock is
    needed; concurrent writers may pass the bound by one entry each.
    """

    def __init__(self, path: str, max_bytes: int) -> None:
        self._path = path
        self._max_units = max_bytes // UNIT
        self._until_look = 0

    def units(self) -> int:
        """Units of 4 KiB counted so far, by all processes."""
        return _size(self._path) - _size(self._path + _BACK)

    def fits(self, size: int) -> bool:
        """Whether there is room for an entry of so many bytes."""
        units = units_of(size)
        if self.units() + units > self._max_units:
            return False
        if units > self._until_look:
            free = unnoted(_free_bytes)
            if free is not None and free[0] - size < RESERVE_FRAC * free[1]:
                return False
            self._until_look = LOOK_UNITS
        return True

    def count(self, size: int) -> bool:
        """Count an entry; False where that cannot be written down: the disk is full, or the folder is gone."""
        self._until_look -= units_of(size)
        return _append(self._path, units_of(size))

    def give_back(self, units: int) -> None:
        """What was counted in so many units is kept no more. Where that cannot be written down, it stays counted."""
        _append(self._path + _BACK, units)

    def take(self, size: int) -> bool:
        """Count an entry where there is room for it."""
        return self.fits(size) and self.count(size)


def units_of(size: int) -> int:
    """Units that an entry of so many bytes is counted as."""
    return size // UNIT + 1


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _append(path: str, count: int) -> bool:
    """So many bytes; False where there is no room for them, or the folder is gone."""
    try:
        with open(path, "ab", buffering=0) as file:
            file.write(bytes(count))
    except OSError as err:
        if err.errno not in (errno.ENOSPC, errno.EDQUOT, errno.ENOENT):
            raise
        return False
    return True


def leaves_room(folder: str, size: int) -> bool:
    """Whether a file of so many bytes leaves others their part of the memory's file system; any does on a disk."""
    if not folder.startswith(MEMORY_FILES):
        return True
    try:
        found = os.statvfs(folder)
    except OSError:  # the folder is gone: writing will say so
        return True
    return found.f_bavail * found.f_frsize - size >= FILES_RESERVE_FRAC * found.f_blocks * found.f_frsize


def _free_bytes() -> tuple[int, int] | None:
    """(free, in all) of the machine's memory, or of the tightest cgroup (v2) around this process; None: not known."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        kib = [int(lines[name].split()[0]) for name in ("MemAvailable", "MemTotal")]
    except (OSError, ValueError, KeyError):
        return None
    return min([(1024 * kib[0], 1024 * kib[1]), *_groups()])


def _groups() -> list[tuple[int, int]]:
    """(free, limit) of each memory cgroup around this process. Files that the kernel may drop are free."""
    found: list[tuple[int, int]] = []
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            own = next((line.rstrip("\n")[3:] for line in file if line.startswith("0::")), None)
    except OSError:
        return found
    while own is not None:
        folder = "/sys/fs/cgroup" + own.rstrip("/")
        limit, used = (_number(f"{folder}/memory.{name}") for name in ("max", "current"))
        if limit is not None and used is not None:
            found.append((limit - used + _inactive_files(folder), limit))
        own = os.path.dirname(own) if own != "/" else None
    return found


def _number(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):  # no such file, or no limit ("max")
        return None


def _inactive_files(folder: str) -> int:
    try:
        with open(f"{folder}/memory.stat", encoding="ascii") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("inactive_file ")), 0)
    except OSError:
        return 0
