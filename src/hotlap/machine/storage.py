"""How fast a folder's storage is, measured with a small file, and whether it is a network mount."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from hotlap.records.errors import HotlapError

__all__ = ["NETWORK_TYPES", "Mount", "Storage", "measure_storage", "mount_of"]

NETWORK_TYPES = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "9p",
    "ceph",
    "lustre",
    "glusterfs",
    "beegfs",
    "gpfs",
    "afs",
    "virtiofs",
)
"""File systems whose reads cross a network or a hypervisor; every ``fuse.*`` counts too."""
_CHUNK = 1 << 20
_FILE_BYTES = 64 << 20
_LIMIT_S = 2.0


@dataclass(frozen=True)
class Mount:
    """Where a folder is mounted from."""

    point: str
    kind: str
    source: str

    @property
    def network(self) -> bool:
        """Whether reading it crosses a network."""
        return self.kind in NETWORK_TYPES or (self.kind.startswith("fuse") and self.kind != "fuseblk")


@dataclass(frozen=True)
class Storage:
    """What was measured for a folder, one file read and written from end to end."""

    folder: str
    read_bytes_per_s: float
    write_bytes_per_s: float
    """Data on the device when the clock stopped (fsync)."""
    direct: bool
    """True: read past the page cache (O_DIRECT). False: from the page cache, so it says little about the device."""
    free_bytes: int
    mount: Mount | None


def mount_of(folder: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> Mount | None:
    """The mount that holds ``folder``; ``None`` where the system has no mountinfo (macOS, Windows)."""
    try:
        lines = mountinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    real = folder.resolve()
    best: Mount | None = None
    for line in lines:
        left, _, right = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), left.split()[4])
        kind, source = right.split()[:2]
        inside = real == Path(point) or Path(point) in real.parents
        if inside and (best is None or len(point) >= len(best.point)):  # a later mount covers an earlier one
            best = Mount(point, kind, source)
    return best


def measure_storage(folder: Path, file_bytes: int = _FILE_BYTES) -> Storage:
    """Write and read one file of at most ``file_bytes`` (less where space or two seconds run out), then remove it.

    Raises HotlapError when the folder cannot be written.
    """
    try:
        free = shutil.disk_usage(folder).free
        chunks = max(1, min(file_bytes, free // 4) // _CHUNK)
        handle, name = tempfile.mkstemp(prefix=".hotlap-storage-", dir=folder)
        os.close(handle)
    except OSError as err:
        raise HotlapError(
            f"Cannot measure the storage of {folder}: {err.strerror}.", "Name a folder you can write."
        ) from err
    try:
        written, write_s = _write(name, chunks)
        read, read_s, direct = _read(name)
    except OSError as err:
        raise HotlapError(f"Measuring the storage of {folder} failed: {err.strerror}.") from err
    finally:
        os.unlink(name)
    mount = mount_of(folder)
    if mount is not None and mount.kind in ("tmpfs", "ramfs"):
        direct = False  # newer kernels accept the flag there, but memory is all there is
    return Storage(str(folder), read / read_s, written / write_s, direct, free, mount)


def _write(name: str, chunks: int) -> tuple[int, float]:
    block = os.urandom(_CHUNK)  # what compresses or repeats would flatter some file systems
    start = time.perf_counter()
    written = 0
    with open(name, "wb", buffering=0) as out:
        for _ in range(chunks):
            written += out.write(block)
            if time.perf_counter() - start > _LIMIT_S:
                break
        os.fsync(out.fileno())
    return written, max(time.perf_counter() - start, 1e-9)


def _read(name: str) -> tuple[int, float, bool]:
    """(bytes, seconds, whether the page cache was left out)."""
    direct = hasattr(os, "O_DIRECT")
    try:
        handle = os.open(name, os.O_RDONLY | (os.O_DIRECT if direct else 0))
    except OSError:  # tmpfs and some network mounts refuse O_DIRECT
        direct = False
        handle = os.open(name, os.O_RDONLY)
    buffer = mmap.mmap(-1, _CHUNK)  # page aligned, as O_DIRECT demands
    start = time.perf_counter()
    total = 0
    try:
        with open(handle, "rb", buffering=0) as source:
            while got := source.readinto(buffer):
                total += got
                if time.perf_counter() - start > _LIMIT_S:
                    break
    finally:
        buffer.close()
    return total, max(time.perf_counter() - start, 1e-9), direct
