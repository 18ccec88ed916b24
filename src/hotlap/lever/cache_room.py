"""What a cache of samples is offered: half of the free memory, where what is known of the samples fits into that."""

from __future__ import annotations

from hotlap.lever.contract import Refusal, Setting
from hotlap.records.findings import LoaderFacts
from hotlap.records.machine import Machine

__all__ = ["cache_settings"]

MIB = 1 << 20


def cache_settings(loader: LoaderFacts | None, machine: Machine, what: str) -> list[Setting] | Refusal:
    """Half of what is free of the memory, and of its file system. ``what``: the beginning of "... not fit"."""
    room = machine.memory_available_bytes // 2
    if machine.shm_free_bytes is not None:
        room = min(room, machine.shm_free_bytes // 2)
    if loader is not None and loader.sample_bytes and loader.dataset_len:
        wanted = loader.sample_bytes * loader.dataset_len
        if wanted > room:
            return Refusal(f"{what} not fit half of the free memory.")
    if room < MIB:
        return Refusal("No memory is free.")
    return [{"max_bytes": room // MIB * MIB}]
