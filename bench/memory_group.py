"""A memory cgroup of a benchmark's own (v1 or v2), and a swap file: a machine that has too little memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["entering", "memory_group", "swap_file"]


@contextlib.contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path]:
    """A memory cgroup below our own; OSError where that is not allowed."""
    own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    if "memory" in own:
        parent, name = Path("/sys/fs/cgroup/memory" + own["memory"]), "memory.limit_in_bytes"
    else:
        parent, name = Path("/sys/fs/cgroup" + own.get("", "/")), "memory.max"
    group = parent / f"hotlap-bench-{os.getpid()}"
    group.mkdir()
    try:
        if not (group / name).exists():
            raise OSError(f"{group} has no {name}: the memory controller is not delegated")
        (group / name).write_text(str(limit_bytes))
        yield group
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)  # until the last process is gone


def entering(group: Path) -> tuple[str, ...]:
    """Words to put before a command, so that it and its children run inside ``group``."""
    return ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")


@contextlib.contextmanager
def swap_file(path: Path, size_bytes: int) -> Iterator[None]:
    """Swap space in a new file, unless the machine has some; OSError where that is not allowed."""
    if len(Path("/proc/swaps").read_text().splitlines()) > 1:
        yield
        return
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size_bytes)
    path.chmod(0o600)
    try:
        for command in ("mkswap", "swapon"):
            done = subprocess.run([command, str(path)], capture_output=True, text=True, check=False)
            if done.returncode:
                raise OSError(f"{command} {path}: {done.stderr.strip()}")
        yield
    finally:
        subprocess.run(["swapoff", str(path)], capture_output=True, check=False)
        path.unlink()
