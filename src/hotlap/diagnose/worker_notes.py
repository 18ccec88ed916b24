"""What a reader should know about loader workers and memory: growth by copied pages, and a small memory disk."""

from __future__ import annotations

from itertools import pairwise

from hotlap.diagnose.view import View
from hotlap.records.sizes import size_text

__all__ = ["worker_notes"]

_GREW = 1.5
_GREW_BYTES = 256 * 2**20
"""Growth of the workers' memory below both of which nothing is said: a cache of the script's own may fill."""
_JUMP = 0.2
"""A change by more than this part from one look to the next is of workers that begin or end: what they share with a
training that has grown is counted for each of them."""


def worker_notes(view: View) -> list[str]:
    """Sentences, none where there are no workers."""
    if not view.workers:
        return []
    notes = []
    held = [
        tick.children_rss_bytes for tick in view.timeline.tick if tick.t >= view.start_ns and tick.children_rss_bytes
    ]
    if len(held) > 3:
        first, late = held[len(held) // 4], held[len(held) // 4 :]
        grown = sum(now - before for before, now in pairwise(late) if abs(now - before) <= _JUMP * before)
        if grown > max((_GREW - 1.0) * first, _GREW_BYTES):
            notes.append(
                f"Memory of the loader workers grew by {size_text(grown)} (from {size_text(first)}) while they loaded. "
                "A data set that is a list of many Python objects is copied page by page as its reference counts are "
                "touched: keep it in arrays (numpy, or one tensor) instead."
            )
    shm = view.machine.shm_bytes
    if shm is not None and shm < view.policy.small_shm_bytes:
        notes.append(
            f"The memory file system (/dev/shm) holds {size_text(shm)}, and workers hand their batches over through "
            "it: a bus error there means that it is full. Start the container with --shm-size or --ipc=host."
        )
    return notes
