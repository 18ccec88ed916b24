"""Buffers that are used again and again, and never while somebody still holds them.

A fresh batch costs page faults. So batches are written into a few buffers in turn. A script that keeps a batch
(``batches.append(batch)``) must not see it change: a buffer whose memory anyone else refers to is let go, and a new one
takes its place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch

__all__ = ["Ring", "Slot"]

Set = list[dict[str, torch.Tensor]]
"""Buffers of one batch, per view."""


class Slot:
    """Buffers for one batch, and the event after which the device has read them."""

    def __init__(self, buffers: Set) -> None:
        self.buffers = buffers
        self.read: torch.cuda.Event | None = None

    def _held(self) -> bool:
        for tensor in (t for group in self.buffers for t in group.values()):
            storage = tensor.untyped_storage()
            # our tensor and the storage object just made for the question are two
            if torch._C._storage_Use_Count(storage._cdata) > 2:
                return True
        return False

    def is_free(self) -> bool:
        """Nobody outside refers to any of it."""
        return not self._held()


class Ring:
    """Slots to take and to give back; ``allocated`` counts how many were ever made."""

    def __init__(self, allocate: Callable[[], Set]) -> None:
        self._allocate = allocate
        self._idle: list[Slot] = []
        self._lock = threading.Lock()
        self.allocated = 0

    def release(self) -> None:
        """Let go of all idle slots; as many as are in use come back."""
        with self._lock:
            self._idle.clear()

    def after_fork(self) -> None:
        """In a child: a lock that nobody holds."""
        self._lock = threading.Lock()

    def take(self) -> Slot:
        """A slot to write into, a fresh one if all are in use or held."""
        slot = self._free()
        if slot is None:
            with self._lock:
                self.allocated += 1
            return Slot(self._allocate())
        if slot.read is not None:
            slot.read.synchronize()
            slot.read = None
        return slot

    def _free(self) -> Slot | None:
        with self._lock:
            for number, slot in enumerate(self._idle):
                if slot.is_free():
                    return self._idle.pop(number)
        return None

    def give_back(self, slot: Slot, keep: int) -> None:
        """To be written into again once nobody holds it. Beyond ``keep`` the oldest are let go: somebody keeps them."""
        with self._lock:
            self._idle.append(slot)
            del self._idle[: max(0, len(self._idle) - keep)]
