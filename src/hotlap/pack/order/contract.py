"""An order says which rows an epoch reads, one behind the other. A pure function of the epoch: that is what makes a
resume exact and lets ranks agree without talking."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hotlap.pack.reader import Indices, Pack

__all__ = ["Order", "generator", "share_of_rank"]


class Order(Protocol):
    """Which rows, in which order."""

    @property
    def grain(self) -> int:
        """Rows that belong together (a pair, a batch of one length) and go to the same rank."""
        ...

    def rows(self, pack: Pack, epoch: int) -> Indices:
        """All ranks' rows of an epoch."""
        ...


def generator(seed: int, epoch: int, purpose: int = 0) -> np.random.Generator:
    """A generator of its own for an epoch; numpy's and torch's global ones stay untouched."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed & (1 << 63) - 1, epoch, purpose])))


def share_of_rank(rows: Indices, grain: int, rank: int, world: int, even: bool = True) -> tuple[Indices, Indices]:
    """(rows, their places in the whole order) for one rank: grains dealt out in turn.

    ``even``: ranks that would get one grain less take one from the beginning again, since a training waits for the
    slowest rank; otherwise the left over grains go unread.
    """
    grains = len(rows) // grain
    per_rank = -(-grains // world) if even else grains // world
    if per_rank == 0 or grains == 0:
        return rows[:0], np.empty(0, np.int64)
    mine = (rank + world * np.arange(per_rank)) % grains
    places: Indices = (mine[:, None] * grain + np.arange(grain)).reshape(-1)
    if world == 1 and len(rows) % grain and even:  # an incomplete last grain (length buckets)
        places = np.arange(len(rows))
    return rows[places], places
