"""A view says how a column is read; opened on a pack it fills buffers, batch after batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import torch

from hotlap.pack.draws import Draws
from hotlap.pack.reader import Indices, Pack
from hotlap.records.errors import HotlapError

__all__ = ["Buffers", "Filler", "View", "one_flip_share"]

Buffers = dict[str, torch.Tensor]
"""What one batch of one column is written into; reused by later batches."""


class Filler(Protocol):
    """A view opened on one column for batches of at most a certain size. Called from several threads."""

    def allocate(self) -> Buffers:
        """Fresh buffers for one batch (none for what is new in each batch anyway)."""
        ...

    def fill(self, buffers: Buffers, rows: Indices, draws: Draws, flipped: int) -> dict[str, Any]:
        """Read ``rows``; the first ``flipped`` are to be mirrored. Returns what the batch shall hold, by name: copies,
        since the pack's memory may hold other rows afterwards."""
        ...


class View(Protocol):
    """How to read a column."""

    def open(self, pack: Pack, name: str, batch: int) -> Filler:
        """Checks that the column fits, and prepares."""
        ...

    @property
    def flip_share(self) -> float:
        """Probability that a sample is mirrored; the loader draws it once for all views of a batch."""
        ...


def one_flip_share(views: Iterable[View]) -> float:
    """The probability of mirroring of those views that mirror at all: they do so together."""
    shares = {view.flip_share for view in views} - {0.0}
    if len(shares) > 1:
        raise HotlapError(f"Views mirror with different probabilities {sorted(shares)}: one batch, one mirroring.")
    return shares.pop() if shares else 0.0
