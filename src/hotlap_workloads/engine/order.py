"""Which rows make which batch: a pure function of seed and epoch, so that ranks agree and a resume is exact."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

__all__ = ["Draw", "Order", "Position", "RankBatches", "Shuffled", "draw_seed"]

_MASK = (1 << 64) - 1


class Draw(NamedTuple):
    """One sample to load: its row, and a seed of its own for its augmentation.

    The seed depends on seed, epoch and row alone: the same augmentation with any number of workers, kept or new.
    """

    row: int
    seed: int

    @property
    def uniform(self) -> float:
        """The upper 53 of the seed's 63 bits as a number in [0, 1)."""
        return (self.seed >> 10) * 2.0**-53


class Order(Protocol):
    """The rows of an epoch, and how they are put into batches. ``grain`` rows in a row go to the same rank.

    An order may say more: ``least``, the fewest rows that a rank can train on, where that is more than one. A last
    batch of fewer is left out.
    """

    @property
    def grain(self) -> int: ...

    def rows(self, epoch: int) -> list[int]:
        """All rows of the epoch, in order."""
        ...

    def batches(self, rows: Sequence[int], batch_size: int) -> list[list[int]]:
        """The rows as batches of ``batch_size``; the last one may be smaller."""
        ...


@dataclass(frozen=True)
class Shuffled:
    """Every row once, fully shuffled."""

    count: int
    seed: int
    grain: int = 1
    least: int = 1

    def rows(self, epoch: int) -> list[int]:
        order = np.random.default_rng([self.seed, epoch]).permutation(self.count)
        return [int(row) for row in order]

    def batches(self, rows: Sequence[int], batch_size: int) -> list[list[int]]:
        return [list(rows[start : start + batch_size]) for start in range(0, len(rows), batch_size)]


def draw_seed(seed: int, epoch: int, row: int) -> int:
    """63 well-mixed bits of (seed, epoch, row): splitmix64 (Steele, Lea, Flood 2014)."""
    z = (seed * 0x9E3779B97F4A7C15 + epoch * 0xD1B54A32D192ED03 + row * 0x2545F4914F6CDD1D + 1) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return (z ^ (z >> 31)) >> 1


@dataclass
class Position:
    """How far a training has come: the epoch, and per batch size the micro-batches taken of it.

    More than one pair only where the memory guard lowered the batch within the epoch.
    """

    epoch: int = 0
    step: int = 0
    taken: list[list[int]] = field(default_factory=list)

    def count(self, batch_size: int, micro_batches: int) -> None:
        """Note micro-batches of an epoch as trained on."""
        if self.taken and self.taken[-1][0] == batch_size:
            self.taken[-1][1] += micro_batches
        else:
            self.taken.append([batch_size, micro_batches])

    def copy(self) -> Position:
        return Position(self.epoch, self.step, [list(pair) for pair in self.taken])

    def next_epoch(self) -> None:
        self.epoch += 1
        self.taken = []


@dataclass(frozen=True)
class RankBatches:
    """A rank's batches of the rest of an epoch: the batch sampler of a DataLoader, over Draws.

    A batch of all ranks together is arranged first and dealt out in turn, so that two ranks with batch 8 see what one
    with batch 16 sees. What is left over and does not give every rank the same is left out.
    """

    order: Order
    seed: int
    batch_size: int
    position: Position
    rank: int = 0
    world: int = 1
    drop_last: bool = True

    def _rest(self) -> list[list[int]]:
        whole = self.batch_size * self.world
        rows, size = self.order.rows(self.position.epoch), 0
        batches: list[list[int]] | None = None
        for size, micro_batches in self.position.taken:
            batches = self.order.batches(rows, size * self.world)[micro_batches:]
            rows = [row for batch in batches for row in batch]
        if batches is None or size != self.batch_size:  # arranging what is left anew would make other batches of it
            batches = self.order.batches(rows, whole)
        if self.drop_last:
            return [batch for batch in batches if len(batch) == whole]
        unit, least = self.world * self.order.grain, self.world * getattr(self.order, "least", 1)
        even = [batch[: len(batch) // unit * unit] for batch in batches]
        return [batch for batch in even if len(batch) >= least]

    def sizes(self) -> Iterable[int]:
        """How many rows each of them has."""
        if self.drop_last:
            return itertools.repeat(self.batch_size)
        return [len(batch) // self.world for batch in self._rest()]

    def __iter__(self) -> Iterator[list[Draw]]:
        epoch = self.position.epoch
        for batch in self._rest():
            mine = [row for i, row in enumerate(batch) if i // self.order.grain % self.world == self.rank]
            yield [Draw(row, draw_seed(self.seed, epoch, row)) for row in mine]

    def __len__(self) -> int:
        return len(self._rest())
