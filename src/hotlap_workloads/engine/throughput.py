"""The line of progress, and the numbers behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

__all__ = ["Throughput", "Window", "progress_line"]


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


class Window:
    """Mean scalars and speed since they were last taken. Scalars stay on the device until then."""

    def __init__(self) -> None:
        self.throughput = Throughput()
        self._sums: dict[str, Any] = {}
        self._steps = 0

    def add(self, scalars: Mapping[str, Any]) -> None:
        """The scalars of a step."""
        for name, value in scalars.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._steps += 1

    def take(self) -> dict[str, float]:
        """The mean of each scalar, none where no step was added, and ``samples_per_s``."""
        means = {name: float(value) / self._steps for name, value in self._sums.items()}
        self._sums, self._steps = {}, 0
        return {**means, "samples_per_s": self.throughput.take()}

    def state(self) -> list[Any]:
        """What a checkpoint keeps of it."""
        return [{name: v.cpu() if isinstance(v, torch.Tensor) else v for name, v in self._sums.items()}, self._steps]

    def restore(self, state: list[Any]) -> None:
        self._sums, self._steps = state


def progress_line(samples_per_s: float, loss: float, epoch: int, step: int, steps: int, eta_s: float) -> str:
    """``Speed 930.0 samples/s  Loss 12.34  Epoch 3  Step 1050/22744  ETA 1.2 h``."""
    hours = eta_s / 3600
    return (
        f"Speed {samples_per_s:.1f} samples/s  Loss {loss:.2f}  Epoch {epoch}  Step {step}/{steps}  ETA {hours:.1f} h"
    )
