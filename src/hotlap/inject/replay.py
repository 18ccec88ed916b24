"""Shorten a trial's epoch for caches: each training loader takes the indices of its first n batches again and again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from hotlap.probe.hook_points import HookPoints

__all__ = ["replay_indices"]

_LOADERS = 8
"""Loaders that are remembered: a script that makes one each epoch fills no memory."""


def replay_indices(batches: int, points: HookPoints) -> None:
    """From the ``batches``-th batch of a loader on, give its first ones' indices in turn. Epochs keep their length.

    Only outside of validation. A loader's batch sampler is still drawn from, so its random numbers stay in step.
    """
    known: dict[tuple[int, int], tuple[Any, list[Any], Iterator[int]]] = {}

    def replay(loader_iter: Any, indices: Any) -> Any:
        if points.validating:
            return indices
        sampler = loader_iter._index_sampler  # the loader's own; several may read one data set, or share a sampler
        which = id(sampler), id(loader_iter._dataset)
        if which not in known:
            if len(known) == _LOADERS:
                del known[next(iter(known))]
            known[which] = sampler, [], itertools.count()
        _, kept, turns = known[which]
        turn = next(turns)
        if len(kept) < batches:
            kept.append(indices)
            return indices
        return kept[turn % batches]

    points.next_index.append(replay)
