"""Memory allocators that are installed and can be preloaded before the C library's own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["FOLDERS", "NAMES", "find_allocators"]

NAMES = ("libtcmalloc_minimal.so*", "libtcmalloc.so*", "libjemalloc.so*")
"""The likeliest to pay first. The minimal tcmalloc is the same allocator without its profiler."""
FOLDERS = ("usr/lib/*-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib", "lib64", "lib")


def find_allocators(python: str = sys.executable, root: Path = Path("/")) -> list[str]:
    """Paths of one library per allocator, as :data:`NAMES` order them; empty where nothing can be preloaded.

    ``python``: the interpreter that runs the training; libraries of its environment (conda) come first.
    """
    if sys.platform != "linux":
        return []
    program = shutil.which(python)
    own = [Path(program).parent.parent / "lib"] if program else []
    folders = [*own, *(found for pattern in FOLDERS for found in sorted(root.glob(pattern)))]
    like = _kind(Path(os.path.realpath(program or sys.executable)))
    found = []
    for names in (NAMES[:2], NAMES[2:]):
        paths = (path for name in names for folder in folders for path in sorted(folder.glob(name)))
        fits = next((path for path in paths if like is not None and _kind(path) == like), None)
        if fits is not None:
            found.append(str(fits))
    return found


def _kind(path: Path) -> Sequence[bytes] | None:
    """Word size and machine of an ELF file: a library of another kind is not loaded. None: no such file."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError:  # a link to nowhere
        return None
    return (head[4:6], head[18:20]) if head.startswith(b"\x7fELF") and len(head) == 20 else None
