"""What a reader should know about loader workers and memory: growth by copied pages, and a small memory disk."""

from __future__ import annotations

from hotlap.diagnose.view import View

__all__ = ["worker_notes"]

_GREW = 1.5
_GREW_BYTES = 256 * 2**20
"""Growth of the workers' memory below both of which nothing is said: a cache of the script's own may fill."""


def worker_notes(view: View) -> list[str]:
    """Sentences, none where there are no workers."""
    if not view.workers:
        return []
    notes = []
    ticks = [tick for tick in view.timeline.tick if tick.t >= view.start_ns and tick.children_rss_bytes]
    if len(ticks) > 3:
        first, last = ticks[len(ticks) // 4].children_rss_bytes or 0, ticks[-1].children_rss_bytes or 0
        if last > _GREW * first and last - first > _GREW_BYTES:
            notes.append(
                f"Memory of the loader workers grew from {first} to {last} bytes while they loaded. A data set that is "
                "a list of many Python objects is copied page by page as its reference counts are touched: keep it in "
                "arrays (numpy, or one tensor) instead."
            )
    shm = view.machine.shm_bytes
    if shm is not None and shm < view.policy.small_shm_bytes:
        notes.append(
            f"The memory file system (/dev/shm) holds {shm} bytes, and workers hand their batches over through it: a "
            "bus error there means that it is full. Start the container with --shm-size or --ipc=host."
        )
    return notes
