"""One OpenMP thread for the calling thread alone, and back.

The gather runs beside a training that has the cores; a team of OpenMP threads per gather would make both spin.
``torch.set_num_threads`` would change every thread of the process, so the OpenMP library that torch has loaded is asked
directly: its setting belongs to the calling thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from hotlap.pack.openmp import openmp

__all__ = ["most_threads", "one_thread"]

_MOST = 8
"""Each has a batch of its own in memory, and eight decode as many JPEGs as most devices take."""


def most_threads() -> int:
    """Background threads that are worth trying: one per core that this process may use, eight at most."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST)


@contextmanager
def one_thread() -> Iterator[None]:
    """Operations of the calling thread run in it alone while this is open."""
    before = torch.get_num_threads()  # also lets torch set up this thread, which would undo ours later
    library = openmp()
    if library is None or before == 1:  # without the library, operations keep torch's own number of threads
        yield
        return
    library.omp_set_num_threads(1)
    try:
        yield
    finally:
        library.omp_set_num_threads(before)
