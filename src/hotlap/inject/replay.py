"""Shorten a trial's epoch for caches: the training loader takes the indices of its first n batches again and again."""

from __future__ import annotations

from typing import Any

from hotlap.probe.hook_points import HookPoints

__all__ = ["replay_indices"]


def replay_indices(batches: int, points: HookPoints) -> None:
    """From the ``batches``-th batch on, give the first ones' indices in turn. Epochs keep their length.

    Only outside of validation. A loader's batch sampler is still drawn from, so its random numbers stay in step.
    """
    kept: list[Any] = []
    given = 0

    def replay(loader_iter: Any, indices: Any) -> Any:
        nonlocal given
        if points.validating:
            return indices
        given += 1
        if len(kept) < batches:
            kept.append(indices)
            return indices
        return kept[(given - 1) % batches]

    points.next_index.append(replay)
