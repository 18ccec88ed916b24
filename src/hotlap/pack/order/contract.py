"""An order says which rows an epoch reads, one behind the other. A pure function of the epoch: that is what makes a
resume exact and lets ranks agree without talking."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Protocol

import numpy as np

from hotlap.pack.reader import Indices, Pack

__all__ = ["Order", "generator", "mark_of", "share_of_rank"]


class Order(Protocol):
    """Which rows, in which order.

    Where rows are told apart by their places in the batch (the two sides of a pair) the order also has a
    ``keeps_places`` that is true: a batch then holds its rows in the order's sequence whatever the views do.
    """

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


def mark_of(order: Order) -> int:
    """A number that orders reading alike share: a checksum of the order's kind and of its fields."""
    crc = zlib.crc32(f"{type(order).__module__}.{type(order).__qualname__}".encode())
    names: list[str] = [field.name for field in fields(order)] if is_dataclass(order) else []
    for name in names:
        value = getattr(order, name)
        listed = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
        crc = zlib.crc32(np.asarray(value).tobytes() if listed else repr(value).encode(), crc)
    return crc


def share_of_rank(rows: Indices, grain: int, rank: int, world: int) -> tuple[Indices, Indices]:
    """(rows, their places in the whole order) for one rank: grains dealt out in turn.

    A training waits for the slowest rank, so all get as much: ranks that would get one grain less take one from the
    beginning again, and an incomplete last grain (length buckets) repeats its rows; with a single rank it stays short.
    """
    if world == 1 or not len(rows):
        return rows, np.arange(len(rows))
    grains = -(-len(rows) // grain)
    mine = (rank + world * np.arange(-(-grains // world))) % grains
    places: Indices = (mine[:, None] * grain + np.arange(grain)).reshape(-1)
    last = (grains - 1) * grain
    behind = places >= len(rows)
    places[behind] = last + (places[behind] - last) % (len(rows) - last)
    return rows[places], places
