"""Batches onto a CUDA device while the training works on the batch before: a stream of its own, pinned buffers."""

from __future__ import annotations

from typing import Any

import torch

from hotlap.pack.ring import Slot
from hotlap.records.errors import HotlapError

__all__ = ["DeviceCopy", "known_device"]


def known_device(device: str | torch.device) -> torch.device:
    """HotlapError where batches cannot be brought to ``device``."""
    found = torch.device(device)
    if found.type not in ("cpu", "cuda"):
        raise HotlapError(f"Loader(device={str(device)!r}): batches lie on the CPU or on CUDA.",
                          f"Leave it out, and move what you need: batch[name].to({str(device)!r}).")  # fmt: skip
    return found


class DeviceCopy:
    """Starts copies, and makes the training's stream wait for them."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def enter_thread(self) -> None:
        """What the calling thread pins and copies is this device's: a new thread would begin with device 0, and make a
        context there."""
        torch.cuda.set_device(self._stream.device)

    def start(self, batch: dict[str, Any], slot: Slot) -> tuple[dict[str, Any], torch.cuda.Event]:
        """The batch on the device, complete once the event has happened."""
        with torch.cuda.stream(self._stream):
            moved = {k: v.to(self._device, non_blocking=True) if isinstance(v, torch.Tensor) else v
                     for k, v in batch.items()}  # fmt: skip
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record(self._stream)
        slot.read = done  # the slot is written again only after the device has read it
        return moved, done

    def hand_over(self, batch: dict[str, Any], done: torch.cuda.Event) -> dict[str, Any]:
        """Let the current stream wait for the copy; its memory is not given away before that stream is done."""
        current = torch.cuda.current_stream(self._device)
        current.wait_event(done)
        for value in batch.values():
            if isinstance(value, torch.Tensor):
                value.record_stream(current)
        return batch
