"""In order, fully shuffled, or shuffled block by block for data that memory does not hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotlap.pack.order.contract import generator
from hotlap.pack.reader import Indices, Pack

__all__ = ["BlockShuffle", "Sequential", "Shuffle"]


@dataclass(frozen=True)
class Sequential:
    """Every row once, as they lie."""

    grain: int = 1

    def rows(self, pack: Pack, epoch: int) -> Indices:
        return np.arange(len(pack))


@dataclass(frozen=True)
class Shuffle:
    """Every row once, by a full permutation; another one each epoch."""

    seed: int = 0
    grain: int = 1

    def rows(self, pack: Pack, epoch: int) -> Indices:
        return generator(self.seed, epoch).permutation(len(pack))


@dataclass(frozen=True)
class BlockShuffle:
    """Every row once: blocks of neighbouring rows in random order, rows mixed within windows of as many rows.

    Reads stay in blocks, so a disk streams instead of seeking, and only a window must be in memory. How well it mixes
    depends on the window: see :func:`hotlap.pack.order.quality.mixing`. Blocks begin where a chunk of the pack does, so
    none is read for a few of its rows: they have about ``block_rows`` rows, or a chunk's where that is more.
    """

    seed: int = 0
    block_rows: int = 64
    window_blocks: int = 256
    grain: int = 1

    @property
    def window_rows(self) -> int:
        """Rows that are mixed with each other: what memory should hold twice."""
        return self.block_rows * self.window_blocks

    def rows(self, pack: Pack, epoch: int) -> Indices:
        draw = generator(self.seed, epoch)
        edges = pack.chunk_rows
        cuts = np.unique(edges[np.searchsorted(edges, np.arange(0, len(pack), self.block_rows))])
        sizes = np.diff(np.append(cuts[cuts < len(pack)], len(pack)))
        drawn = draw.permutation(len(sizes))
        sizes, starts = sizes[drawn], cuts[drawn]
        rows: Indices = np.arange(len(pack)) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        for first in range(0, len(rows), self.window_rows):
            draw.shuffle(rows[first : first + self.window_rows])
        return rows
