"""Epochs become steps, once, in one place."""

from __future__ import annotations

from dataclasses import dataclass

from hotlap_workloads.engine.settings import EngineSettings

__all__ = ["Cadences"]


@dataclass(frozen=True)
class Cadences:
    """Steps between events; 0 is never."""

    evaluate: int
    heavy: int
    checkpoint: int
    show: int
    track: int
    memory: int
    cleanup: int

    @staticmethod
    def of(settings: EngineSettings, epoch_steps: int) -> Cadences:
        def steps(epochs: float) -> int:
            return max(1, round(epochs * epoch_steps)) if epochs > 0 else 0

        return Cadences(
            evaluate=steps(settings.evaluate_every_epochs),
            heavy=steps(settings.heavy_every_epochs),
            checkpoint=steps(settings.checkpoint_every_epochs),
            show=settings.print_every_steps,
            track=settings.track_every_steps,
            memory=settings.memory_check_every_steps,
            cleanup=settings.cleanup_every_steps,
        )

    @property
    def evaluations(self) -> tuple[tuple[bool, int], ...]:
        """Whether it is the heavy one, and the steps between two; in the order in which they are done."""
        return (False, self.evaluate), (True, self.heavy)

    @staticmethod
    def due(every: int, step: int) -> bool:
        return every > 0 and step % every == 0
