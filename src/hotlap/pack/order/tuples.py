"""Pairs and triplets: neighbouring rows of the order that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hotlap.pack.order.contract import generator
from hotlap.pack.order.sampled import by_class
from hotlap.pack.reader import Indices, Pack
from hotlap.records.errors import HotlapError

__all__ = ["Pairs", "Triplets", "Tuples"]


@dataclass(frozen=True)
class Tuples:
    """Given tuples of rows (a list of trials), shuffled: ``[n, 2]`` or ``[n, 3]`` row numbers."""

    table: Sequence[Sequence[int]] | np.ndarray[Any, Any]
    seed: int | None = 0
    """None: in the order given."""
    keeps_places: bool = field(default=True, init=False)

    @property
    def grain(self) -> int:
        return int(np.asarray(self.table).shape[1])

    def rows(self, pack: Pack, epoch: int) -> Indices:
        table = np.asarray(self.table, np.int64)
        if self.seed is not None:
            table = generator(self.seed, epoch).permutation(table)
        return table.reshape(-1)


@dataclass(frozen=True)
class Pairs:
    """(a, b) with b of the same class for a share of the pairs, of another class for the rest.

    ``batch[name][0::2]`` and ``[1::2]`` are the two sides. Every row of a class with two rows or more is an ``a`` once
    an epoch. ``hard`` names classes that look alike (``pack.metadata["pairs"]``): the other then is the look-alike.
    """

    column: str = "label"
    same: float = 0.5
    hard: Sequence[Sequence[int | str]] | None = None
    seed: int = 0
    grain: int = 2
    keeps_places: bool = field(default=True, init=False)

    def rows(self, pack: Pack, epoch: int) -> Indices:
        draw, labels, groups, number = _setting(pack, self.column, self.seed, epoch)
        first = draw.permutation(np.concatenate(groups))
        alike = draw.random(len(first)) < self.same
        near = _look_alikes(self.hard or (), {label: k for k, label in enumerate(labels)})
        second = np.empty_like(first)
        for k, (row, is_same) in enumerate(zip(first, alike, strict=True)):
            own = number[row]
            if is_same and len(groups[own]) > 1:
                second[k] = _other(draw, groups[own], row)
            else:
                options = near.get(own)
                other = draw.choice(options) if options else _another(draw, own, len(groups))
                second[k] = draw.choice(groups[other])
        return np.stack([first, second], 1).reshape(-1)


@dataclass(frozen=True)
class Triplets:
    """(anchor, positive, negative): two of one class, one of another. ``[0::3]``, ``[1::3]``, ``[2::3]``."""

    column: str = "label"
    seed: int = 0
    grain: int = 3
    keeps_places: bool = field(default=True, init=False)

    def rows(self, pack: Pack, epoch: int) -> Indices:
        draw, _, groups, number = _setting(pack, self.column, self.seed, epoch)
        paired = [g for g in groups if len(g) > 1]
        if not paired:
            raise HotlapError(f"No class of column {self.column!r} has two rows: there are no triplets.")
        anchors = draw.permutation(np.concatenate(paired))
        out = np.empty((len(anchors), 3), np.int64)
        for target, row in zip(out, anchors, strict=True):
            own = int(number[row])
            negative = draw.choice(groups[_another(draw, own, len(groups))])
            target[:] = row, _other(draw, groups[own], row), negative
        return out.reshape(-1)


def _setting(pack: Pack, column: str, seed: int,
             epoch: int) -> tuple[np.random.Generator, list[Any], list[Indices], Indices]:  # fmt: skip
    """(draws, class of each group, rows of each group, group of each row)."""
    found = by_class(pack, column)
    labels, groups = list(found), list(found.values())
    if len(groups) < 2:
        raise HotlapError(f"Column {column!r} has a single class: there is no other to pair with.")
    number = np.empty(len(pack), np.int64)
    for k, rows in enumerate(groups):
        number[rows] = k
    return generator(seed, epoch), labels, groups, number


def _other(draw: np.random.Generator, rows: Indices, row: int) -> int:
    """A row of the class that is not ``row``."""
    at = int(draw.integers(len(rows) - 1))
    return int(rows[at] if rows[at] != row else rows[-1])


def _another(draw: np.random.Generator, own: int, count: int) -> int:
    """A class that is not ``own``."""
    at = int(draw.integers(count - 1))
    return at if at < own else at + 1


def _look_alikes(pairs: Sequence[Sequence[int | str]], number: dict[Any, int]) -> dict[int, list[int]]:
    near: dict[int, list[int]] = {}
    for a, b in pairs:
        if a in number and b in number:
            near.setdefault(number[a], []).append(number[b])
            near.setdefault(number[b], []).append(number[a])
    return near
