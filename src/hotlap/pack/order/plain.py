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
    """Every row once: blocks of neighbouring rows in random order, rows mixed within a window of blocks.

    Reads stay in blocks, so a disk streams instead of seeking, and only a window must be in memory. How well it mixes
    depends on the window: see :func:`hotlap.pack.order.quality.mixing`.
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
        count = -(-len(pack) // self.block_rows)
        starts = draw.permutation(count) * self.block_rows
        rows = (starts[:, None] + np.arange(self.block_rows)).reshape(-1)
        rows = rows[rows < len(pack)]
        for first in range(0, len(rows), self.window_rows):
            draw.shuffle(rows[first : first + self.window_rows])
        return rows
