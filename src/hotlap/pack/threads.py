"""One OpenMP thread for the calling thread alone, and back.

The gather runs beside a training that has the cores; a team of OpenMP threads per gather would make both spin.
``torch.set_num_threads`` would change every thread of the process, so the OpenMP library that torch has loaded is asked
directly: its setting belongs to the calling thread.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

__all__ = ["one_thread"]


@functools.cache
def _openmp() -> ctypes.CDLL | None:
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # no Linux: operations keep torch's own number of threads
        return None
    for name in ("libgomp", "libiomp", "libomp"):
        for line in maps:
            if f"/{name}" in line:
                return ctypes.CDLL(line.split(maxsplit=5)[5])
    return None


@contextmanager
def one_thread() -> Iterator[None]:
    """Operations of the calling thread run in it alone while this is open."""
    before = torch.get_num_threads()  # also lets torch set up this thread, which would undo ours later
    library = _openmp()
    if library is None or before == 1:
        yield
        return
    library.omp_set_num_threads(1)
    try:
        yield
    finally:
        library.omp_set_num_threads(before)
