"""One OpenMP thread for the calling thread alone, and back.

The gather runs beside a training that has the cores; a team of OpenMP threads per gather would make both spin.
``torch.set_num_threads`` would change every thread of the process, so the OpenMP library that torch has loaded is asked
directly: its setting belongs to the calling thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from hotlap.pack.available import cores, memory_bytes
from hotlap.pack.openmp import openmp

__all__ = ["most_threads", "one_thread"]

_MOST = 8
"""Each has a batch of its own in memory, and eight decode as many JPEGs as most devices take."""
_MEMORY_FRAC = 1 / 8
"""Share of the memory that batches may take where more threads are tried; the rest is the training's."""


def most_threads(batch_bytes: int, ahead: int) -> int:
    """Background threads that are worth trying: one per core that this process may use, eight at most, and no more than
    have room for their batches."""
    batches = int(memory_bytes() * _MEMORY_FRAC) // max(batch_bytes, 1)
    return max(1, min(cores(), _MOST, batches - ahead - 2))


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
