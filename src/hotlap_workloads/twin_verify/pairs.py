"""Which pairs an epoch has: groups of an anchor with another image of the same person, and with one of another.

All is a function of seed, epoch and group, so that pairs drawn while loading and pairs computed before are the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hotlap_workloads.engine.order import draw_seed
from hotlap_workloads.errors import DataError
from hotlap_workloads.twin_verify.album import Album

__all__ = ["ANCHOR", "Groups", "PairLaw", "PairOrder", "PairTable", "Row", "compute_pairs", "row_of"]

ANCHOR = 0
"""Place of the anchor in a group; 1 is the same person, 2 another."""


class Row(NamedTuple):
    """Row 2 g of an epoch is the pair (anchor, same person) of group g, row 2 g + 1 is (anchor, other person).

    Rows count on from epoch to epoch, so that a row alone says which pair it is.
    """

    epoch: int
    group: int
    same: bool


def row_of(row: int, groups: int) -> Row:
    """What a row number means where an epoch has so many groups."""
    epoch, rest = divmod(row, 2 * groups)
    return Row(epoch, rest // 2, rest % 2 == 0)


class Groups(Protocol):
    """(anchor, same, other) of a group, as image numbers."""

    def __call__(self, epoch: int, group: int) -> tuple[int, int, int]: ...


@dataclass(frozen=True)
class PairLaw:
    """Draws a group: a person, two images of them, and one of a twin (``twin_share``) or of somebody else."""

    album: Album
    people: Sequence[int]
    seed: int
    twin_share: float

    def check(self, where: Path) -> None:
        """Raise DataError where the law cannot be kept."""
        if not self._anchors:
            raise DataError(where, "has nobody with two images to train on.")
        if self.twin_share > 0 and not self._with_twin:
            raise DataError(where, "has no twins among the people to train on.", "Set twin_share=0.")
        for person in self._anchors if self.twin_share < 1 else ():
            if len(self._twins[person]) + 1 >= len(self._present):
                raise DataError(where, f"has nobody to tell {self.album.names[person]!r} from but twins.")

    def __call__(self, epoch: int, group: int) -> tuple[int, int, int]:
        draw = random.Random(draw_seed(self.seed, epoch, group))
        if draw.random() < self.twin_share:
            person = draw.choice(self._with_twin)
            other = draw.choice(self._twins[person])
        else:
            person = draw.choice(self._anchors)
            other = draw.choice(self._present)
            while other == person or other in self._twins[person]:
                other = draw.choice(self._present)
        anchor, same = draw.sample(self.album.images_of[person], 2)
        return anchor, same, draw.choice(self.album.images_of[other])

    @cached_property
    def _present(self) -> list[int]:
        return [p for p in self.people if self.album.images_of[p]]

    @cached_property
    def _anchors(self) -> list[int]:
        return [p for p in self.people if len(self.album.images_of[p]) > 1]

    @cached_property
    def _twins(self) -> dict[int, list[int]]:
        present = set(self._present)
        return {p: [twin for twin in self.album.twins_of[p] if twin in present] for p in self._present}

    @cached_property
    def _with_twin(self) -> list[int]:
        return [p for p in self._anchors if self._twins[p]]


def compute_pairs(law: PairLaw, epochs: int, groups: int) -> NDArray[np.int32]:
    """(epochs, groups, 3): every group of every epoch."""
    table = np.empty((epochs, groups, 3), np.int32)
    for epoch in range(epochs):
        for group in range(groups):
            table[epoch, group] = law(epoch, group)
    return table


@dataclass(frozen=True)
class PairTable:
    """Groups looked up."""

    table: NDArray[np.int32]

    def __call__(self, epoch: int, group: int) -> tuple[int, int, int]:
        anchor, same, other = self.table[epoch, group].tolist()
        return anchor, same, other


@dataclass(frozen=True)
class PairOrder:
    """Groups shuffled; the two pairs of a group stand together, so that their anchor need be embedded once."""

    groups: int
    seed: int
    grain: int = 2

    def rows(self, epoch: int) -> list[int]:
        order = np.random.default_rng([self.seed, epoch]).permutation(self.groups)
        first = 2 * (epoch * self.groups + order)
        return [int(row) for row in np.stack([first, first + 1], axis=1).ravel()]

    def batches(self, rows: Sequence[int], batch_size: int) -> list[list[int]]:
        return [list(rows[start : start + batch_size]) for start in range(0, len(rows), batch_size)]
