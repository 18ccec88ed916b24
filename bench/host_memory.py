"""Memory of this process and of its loading processes, as the kernel counts it."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

__all__ = ["peak_bytes", "private_bytes"]


def private_bytes() -> int:
    """Anonymous memory of the loading processes that live now."""
    total = 0
    for child in psutil.Process().children(recursive=True):
        total += _kib(f"/proc/{child.pid}/status", "RssAnon:")
    return total


def peak_bytes() -> int:
    """The most memory that this process has had so far."""
    return _kib(f"/proc/{os.getpid()}/status", "VmHWM:")


def _kib(path: str, key: str) -> int:
    try:
        lines = Path(path).read_text().splitlines()
    except FileNotFoundError:  # it has ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), 0)
