"""A way of reading a pack that ``hotlap pack bench`` times, and what all of them have to read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from hotlap.pack.dataset import PackedDataset
from hotlap.pack.order.contract import generator
from hotlap.pack.reader import Indices, Pack
from hotlap.pack.views.contract import View
from hotlap.records.errors import HotlapError

__all__ = ["PREFETCHED", "Batch", "FirstRows", "Reading", "Views", "Way", "endless", "said", "worker_ways"]

PREFETCHED = 2
"""Batches that each worker of torch's DataLoader makes ahead, unless told otherwise."""
TIMEOUT_S = 60
"""A worker that gives nothing for so long is taken to hang."""

Views = Mapping[str, View | None]
Batch = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """One way of reading."""

    name: str
    open: Callable[[], Iterator[Batch]]
    """Starts it; batches without end, epoch after epoch."""
    ahead: int = 0
    """Batches that it makes while nobody asks. They lie ready when its turn begins, and say nothing of its rate."""
    apart: bool = False
    """The work is in processes of its own, whose time is not counted here."""
    library: str | None = None
    """Name and version of the library, of whose failure the others go on. None: Hotlap's own, which must not fail."""


@dataclass(frozen=True)
class Reading:
    """What every way reads: the first ``rows`` rows of a pack, each once per epoch in random order, by ``views``."""

    pack: Pack
    batch: int
    """Rows per batch."""
    views: Views
    rows: int

    def data(self) -> PackedDataset:
        """The pack as a map-style data set, opened: threads that read it do not have to agree on who opens it."""
        data = PackedDataset(self.pack.folder, self.views)
        len(data)
        return data

    def shuffled(self) -> torch.utils.data.RandomSampler:
        """For a DataLoader."""
        return torch.utils.data.RandomSampler(range(self.rows))

    def orders(self) -> Iterator[list[int]]:
        """The rows of each batch, without end."""
        for _ in itertools.count():
            order = torch.randperm(self.rows).tolist()
            yield from (order[first : first + self.batch] for first in range(0, self.rows, self.batch))


@dataclass(frozen=True)
class FirstRows:
    """An order of the first ``count`` rows, shuffled anew each epoch."""

    count: int
    grain: int = 1

    def rows(self, pack: Pack, epoch: int) -> Indices:
        return generator(0, epoch).permutation(self.count)


def endless(loader: Iterable[Batch]) -> Iterator[Batch]:
    """Epoch after epoch of ``loader``."""
    while True:
        is_empty = True
        for batch in loader:
            is_empty = False
            yield batch
        if is_empty:
            raise HotlapError("An epoch has no batch.")


def said(err: BaseException) -> str:
    """An error in one line, of at most 200 letters."""
    words = " ".join(str(err).split())
    return f"{type(err).__name__}: {words:.200}" if words else type(err).__name__


def worker_ways(name: str, library: str, open_with: Callable[[dict[str, Any]], Any]) -> list[Way]:
    """Ways of a library that gives batches by torch's DataLoader: without workers, and with two."""

    def open_way(workers: int) -> Iterator[Batch]:
        keep = {"persistent_workers": True, "timeout": TIMEOUT_S} if workers else {}
        loader = open_with({"num_workers": workers, **keep})
        try:
            yield from endless(loader)
        finally:
            if hasattr(loader, "_iterator"):  # LitData's refers to its loader: left to the collector, torch can only
                loader._iterator = None  # wait for its workers and kill them, which takes ten seconds

    return [
        Way(name, partial(open_way, 0), library=library),
        Way(f"{name}, 2 workers", partial(open_way, 2), ahead=2 * PREFETCHED, apart=True, library=library),
    ]
