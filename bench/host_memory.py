"""Memory of this process and of its loading processes, as the kernel counts it."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

__all__ = ["peak_bytes", "private_bytes"]


def private_bytes(own: bool = False) -> int:
    """Anonymous memory of the loading processes that live now; with ``own`` that of this one too."""
    this = psutil.Process()
    processes = [*this.children(recursive=True), *([this] if own else [])]
    return sum(_kib(f"/proc/{process.pid}/status", "RssAnon:") for process in processes)


def peak_bytes() -> int:
    """The most memory that this process has had so far."""
    return _kib(f"/proc/{os.getpid()}/status", "VmHWM:")


def _kib(path: str, key: str) -> int:
    try:
        lines = Path(path).read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), 0)
