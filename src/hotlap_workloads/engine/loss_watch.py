"""A loss that is no number: seen one step late without waiting for the device, or at once where steps are skipped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.errors import EXIT_NAN, WorkloadError

__all__ = ["LossWatch"]

MOST_SKIPPED_IN_A_ROW = 50
"""Steps after which skipping is not a remedy any more."""


class LossWatch:
    """``skipped`` counts steps left out. With "stop", the batch is saved to ``nan_batch.pt``.

    To stop, the loss of the step *before* is looked at, while the device is busy with this one: the host need not wait.
    What it is told was copied behind that loss; asked now, the device would answer behind all of this step.
    To skip, it must be known before the update, which costs that wait at every step.
    """

    def __init__(self, policy: str, out: Path, ranks: Ranks, device: torch.device) -> None:
        self.skipped = 0
        self._in_a_row = 0
        self._policy, self._out, self._ranks, self._device = policy, out, ranks, device
        self._before: tuple[int, torch.Tensor, Any, Callable[[], bool]] | None = None
        self._answer: torch.Tensor | None = None

    def must_skip(self, loss: torch.Tensor) -> bool:
        """Whether the step is left out. All ranks say the same."""
        if self._policy != "skip":
            return False
        bad = self._ranks.any(not bool(torch.isfinite(loss)), self._device)
        self._in_a_row = self._in_a_row + 1 if bad else 0
        self.skipped += bad
        if self._in_a_row > MOST_SKIPPED_IN_A_ROW:
            raise WorkloadError(f"The loss was no number {self._in_a_row} steps in a row.", exit_code=EXIT_NAN)
        return bad

    def look(self, step: int, loss: torch.Tensor, batch: Any) -> None:
        """Note this step, check the one before."""
        if self._policy == "stop":
            self.settle()
            self._before = (step, loss, batch, self._asked(loss))

    def _asked(self, loss: torch.Tensor) -> Callable[[], bool]:
        """Gives whether the loss is a number, and waits for no more than that."""
        finite = torch.isfinite(loss)
        if self._device.type != "cuda":
            return lambda: bool(finite)
        answer = self._answer = _pinned() if self._answer is None else self._answer
        answer.copy_(finite, non_blocking=True)
        copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        copied.record()

        def said() -> bool:
            copied.synchronize()
            return bool(answer)

        return said

    def settle(self) -> None:
        """Check what has not been checked. Before anything is saved."""
        if self._before is None:
            return
        (step, loss, batch, is_finite), self._before = self._before, None
        if is_finite():
            return
        path = self._out / f"nan_batch.rank{self._ranks.rank}.pt"
        torch.save({"step": step, "loss": float(loss), "batch": batch}, path)
        raise WorkloadError(
            f"The loss of step {step} is {float(loss)}; its batch is in {path}.",
            "The last checkpoint is from before it. Lower lr, clip_norm=5, or on_nan=skip.",
            EXIT_NAN,
        )


def _pinned() -> torch.Tensor:
    return torch.empty((), dtype=torch.bool, pin_memory=True)
