"""The engine's own loop."""

from __future__ import annotations

from typing import Any

import torch
from parts import Training, asked_for

from hotlap_workloads.engine.loop import Trainer


class Timed(Trainer):
    """Tells the stopwatch of each step; ends without the evaluation and the checkpoint that end a training."""

    def __init__(self, training: Training) -> None:
        super().__init__(training.name, training.task, training.settings, training.context)
        self._stopwatch = training.stopwatch
        self._forward_backward = self.stepper.forward_backward
        self.stepper.forward_backward = self._noting  # type: ignore[method-assign]

    def _noting(self, *step: Any) -> dict[str, torch.Tensor]:
        self._said = self._forward_backward(*step)
        return self._said

    def _step(self, micro_batches: list[Any], rows: list[int]) -> None:
        super()._step(micro_batches, rows)
        self._stopwatch.step(self._said["loss"])

    def _evaluate(self, heavy: bool) -> None:
        """Not here."""

    def _save(self) -> None:
        """Not here."""

    def _resume(self) -> None:
        """Each run begins anew."""


def main() -> None:
    training = asked_for()
    trainer = Timed(training)
    training.seed()
    trainer.run()
    training.done()


if __name__ == "__main__":
    main()
