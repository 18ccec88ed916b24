"""The line of progress, and the numbers behind it."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Throughput", "progress_line"]


class Throughput:
    """Samples per second since the last line. Evaluation and checkpoints count: users wait for them too."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._since = clock()
        self._samples = 0

    def add(self, samples: int) -> None:
        self._samples += samples

    def take(self) -> float:
        """Samples per second since the last call."""
        now = self._clock()
        rate = self._samples / max(now - self._since, 1e-9)
        self._since, self._samples = now, 0
        return rate


def progress_line(samples_per_s: float, loss: float, epoch: int, step: int, steps: int, eta_s: float) -> str:
    """``Speed 930.0 samples/s  Loss 12.34  Epoch 3  Step 1050/22744  ETA 1.2 h``."""
    hours = eta_s / 3600
    return (
        f"Speed {samples_per_s:.1f} samples/s  Loss {loss:.2f}  Epoch {epoch}  Step {step}/{steps}  ETA {hours:.1f} h"
    )
