"""Memory of the device: how full it is, a smaller batch when it runs full, the largest batch that fits."""

from __future__ import annotations

from collections.abc import Callable

import torch

from hotlap_workloads.errors import WorkloadError

__all__ = ["largest_batch", "lowered", "used_frac"]

MARGIN_FRAC = 0.90
"""Of the largest batch that fitted: later batches may need more (longer samples, fragmentation)."""


def used_frac(device: torch.device) -> float | None:
    """The share of the GPU's memory that this process has reserved at most; None on a CPU."""
    if device.type != "cuda":
        return None
    return torch.cuda.max_memory_reserved(device) / torch.cuda.get_device_properties(device).total_memory


def lowered(batch_size: int, used: float, ceiling: float) -> int:
    """The batch after the guard: 4 fewer just above the ceiling, 8 fewer once memory is all but full."""
    if used <= ceiling:
        return batch_size
    return max(1, batch_size - (8 if used > (1 + ceiling) / 2 else 4))


def largest_batch(start: int, attempt: Callable[[int], float | None], ceiling: float, most: int) -> int:
    """The largest batch worth training with.

    ``attempt(batch)`` runs a step and returns the share of memory it took, None when memory ran out. Doubles from
    ``start`` until it fails, then halves the gap; MARGIN_FRAC of the result is tried once more and returned.
    """

    def good(batch: int) -> bool:
        used = attempt(batch)
        return used is not None and used <= ceiling

    if not good(start):
        raise WorkloadError(f"Already a batch of {start} takes more than the ceiling of memory.", "Lower batch_size.")
    low, high = start, start
    while high < most:
        high = min(most, high * 2)
        if not good(high):
            break
        low = high
    while high - low > max(1, low // 16) and low < most:
        middle = (low + high) // 2
        low, high = (middle, high) if good(middle) else (low, middle)
    kept = max(start, int(low * MARGIN_FRAC))
    while kept > start and not good(kept):
        kept = max(start, int(kept * MARGIN_FRAC))
    return kept
