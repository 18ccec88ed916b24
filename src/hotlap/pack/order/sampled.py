"""Orders that look at a column: weighted, class-balanced, one per class, batches of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hotlap.pack.order.contract import generator
from hotlap.pack.reader import Indices, Pack
from hotlap.records.errors import HotlapError

__all__ = ["Balanced", "LengthBuckets", "OncePerClass", "Weighted", "by_class"]


def by_class(pack: Pack, column: str) -> dict[Any, Indices]:
    """Class (a number or a text) -> its rows, classes in the order of their values."""
    kind = pack.column(column).kind
    if kind in ("text", "bytes"):
        # as Python's own values: numpy's fixed-width texts end at their last byte that is not 0
        texts: list[Any] = list(pack.texts(column))
        names = sorted(set(texts))
        number = {name: k for k, name in enumerate(names)}
        labels = np.array([number[text] for text in texts], np.int64)
    elif kind == "tensor":
        labels, names = pack.values(column), []
        if labels.ndim != 1:
            what = f"Column {column!r} has rows of shape {labels.shape[1:]}; classes are single numbers or texts."
            raise HotlapError(what, "Name another column.")
    else:
        raise HotlapError(f"Column {column!r} is {kind}; classes are single numbers or texts.", "Name another column.")
    order = np.argsort(labels, kind="stable")
    groups = [rows for rows in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if len(rows)]
    return dict(zip(names or [labels[rows[0]].item() for rows in groups], groups, strict=True))


@dataclass(frozen=True)
class Weighted:
    """Rows drawn with replacement, each in proportion to its weight."""

    weights: Sequence[float] | np.ndarray[Any, Any]
    count: int | None = None
    """Rows per epoch; default: as many as the pack has."""
    seed: int = 0
    grain: int = 1

    def rows(self, pack: Pack, epoch: int) -> Indices:
        weights = np.asarray(self.weights, np.float64)
        if weights.shape != (len(pack),) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum():
            raise HotlapError(f"There must be {len(pack)} weights, none negative and not all zero.")
        edges = np.cumsum(weights)
        draws = generator(self.seed, epoch).random(self.count or len(pack)) * edges[-1]
        rows: Indices = np.searchsorted(edges, draws, "right").astype(np.int64)
        return rows


@dataclass(frozen=True)
class Balanced:
    """Batches of ``classes`` x ``per_class`` rows (for metric learning); set the batch size to their product.

    Classes are drawn without repetition in a batch; a class with fewer rows repeats them.
    """

    column: str = "label"
    classes: int = 16
    per_class: int = 4
    batches: int | None = None
    """Per epoch; default: as many as read as many rows as the pack has."""
    seed: int = 0

    @property
    def grain(self) -> int:
        return self.classes * self.per_class

    def rows(self, pack: Pack, epoch: int) -> Indices:
        groups = list(by_class(pack, self.column).values())
        if len(groups) < self.classes:
            raise HotlapError(f"{self.classes} classes a batch wanted; column {self.column!r} has {len(groups)}.")
        draw, batches = generator(self.seed, epoch), self.batches or max(1, len(pack) // self.grain)
        out = np.empty((batches, self.classes, self.per_class), np.int64)
        for batch in out:
            for target, number in zip(batch, draw.choice(len(groups), self.classes, replace=False), strict=True):
                rows = groups[number]
                target[:] = draw.choice(rows, self.per_class, replace=len(rows) < self.per_class)
        return out.reshape(-1)


@dataclass(frozen=True)
class OncePerClass:
    """No class twice in a batch of ``batch`` rows (one-speaker-once); each row at most ``per_class`` an epoch.

    As VoxCeleb trainers do it: each class gives up to ``per_class`` rows, and batches are filled so that no class
    meets itself. Rows that no batch can take without repeating a class are left to another epoch.
    """

    column: str = "label"
    batch: int = 128
    per_class: int | None = None
    seed: int = 0

    @property
    def grain(self) -> int:
        return self.batch

    def rows(self, pack: Pack, epoch: int) -> Indices:
        groups = list(by_class(pack, self.column).values())
        if len(groups) < self.batch:
            raise HotlapError(f"A batch of {self.batch} different classes cannot be filled from {len(groups)}.")
        draw = generator(self.seed, epoch)
        pools = [list(draw.permutation(rows)[: self.per_class]) for rows in groups]
        left = np.array([len(pool) for pool in pools])
        batches = []
        while np.count_nonzero(left) >= self.batch:
            # classes with more rows left come first, or they would be left alone at the end
            chosen = np.argsort(-left + draw.random(len(left)) * 0.5, kind="stable")[: self.batch]
            draw.shuffle(chosen)
            batches.append([pools[c].pop() for c in chosen])
            left[chosen] -= 1
        draw.shuffle(batches)
        return np.array(batches, np.int64).reshape(-1)


@dataclass(frozen=True)
class LengthBuckets:
    """Batches of rows of like length, so that padding is small; which rows and which batch first, is random."""

    column: str
    batch: int
    spread: int = 64
    """Batches that are sorted by length together: more make lengths more alike and batches less random."""
    seed: int = 0
    grain: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "grain", self.batch)

    def rows(self, pack: Pack, epoch: int) -> Indices:
        draw, lengths = generator(self.seed, epoch), pack.lengths(self.column)
        rows = draw.permutation(len(pack))
        pool = self.batch * self.spread
        for first in range(0, len(rows), pool):
            some = rows[first : first + pool]
            some[:] = some[np.argsort(lengths[some], kind="stable")]
        whole = len(rows) // self.batch
        batches = rows[: whole * self.batch].reshape(whole, self.batch)
        return np.concatenate([draw.permutation(batches).reshape(-1), rows[whole * self.batch :]])
