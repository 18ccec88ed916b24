"""Memory of the device: how full it is, a smaller batch when it runs full, the largest batch that fits."""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch

from hotlap_workloads.errors import WorkloadError

__all__ = ["clean_up", "forget_peak", "largest_batch", "lowered", "used_frac"]

MARGIN_FRAC = 0.90
"""Of the largest batch that fitted: later batches may need more (longer samples, fragmentation)."""


def used_frac(device: torch.device) -> float | None:
    """The share of the GPU's memory that this process's tensors took at most; None on a CPU.

    What is reserved beyond that is a cache, which gives way: with samples of many sizes it fills the memory by itself.
    """
    if device.type != "cuda":
        return None
    return torch.cuda.max_memory_allocated(device) / torch.cuda.get_device_properties(device).total_memory


def forget_peak(device: torch.device) -> None:
    """Give cached memory back, and count the peak of memory anew."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def clean_up(device: torch.device) -> None:
    """Collect garbage, and give cached memory back."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def lowered(batch_size: int, used: float, ceiling: float, grain: int = 1) -> int:
    """The batch after the guard: 4 fewer just above the ceiling, 8 fewer once memory is all but full.

    In whole multiples of ``grain``, the samples that stand together: one at least.
    """
    if used <= ceiling:
        return batch_size
    fewer = batch_size - (8 if used > (1 + ceiling) / 2 else 4)
    return max(grain, fewer // grain * grain)


def largest_batch(start: int, attempt: Callable[[int], float | None], ceiling: float, most: int, grain: int = 1) -> int:
    """The largest batch worth training with.

    ``attempt(batch)`` runs a step and returns the share of memory it took, None when memory ran out. Doubles from
    ``start`` until it fails, then halves the gap; MARGIN_FRAC of the result is tried once more and returned. All are
    multiples of ``grain``.
    """

    def good(groups: int) -> bool:
        used = attempt(groups * grain)
        return used is not None and used <= ceiling

    asked, start, most = start, max(1, start // grain), most // grain
    if not good(start):
        raise WorkloadError(f"Already a batch of {asked} takes more than the ceiling of memory.", "Lower batch_size.")
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
    return kept * grain
