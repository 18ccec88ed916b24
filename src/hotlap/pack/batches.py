"""One batch, from its number: rows, every column filled. A pure function of (epoch, batch).

Images that are mirrored come first, and every other column with them, so that mirroring is one operation. Where the
order gives places in the batch a meaning (pairs), the images are put back into it: one more copy.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch

from hotlap.pack.available import memory_bytes
from hotlap.pack.draws import Draws
from hotlap.pack.order.contract import Order, share_of_rank
from hotlap.pack.order.plain import BlockShuffle
from hotlap.pack.read_ahead import ReadAhead
from hotlap.pack.reader import Indices, Pack
from hotlap.pack.resident import Resident
from hotlap.pack.ring import Ring, Slot
from hotlap.pack.settings import LoaderSettings
from hotlap.pack.views.contract import Filler, View, one_flip_share
from hotlap.records.errors import HotlapError

__all__ = ["BatchMaker"]

_READ_AHEAD = 8


class BatchMaker:
    """Makes batches in any thread; keeps the orders of the epochs in use."""

    def __init__(self, pack: Pack, batch: int, views: dict[str, View], order: Order,
                 settings: LoaderSettings, pin: bool) -> None:  # fmt: skip
        if batch < 1 or (batch % order.grain and order.grain % batch):
            raise HotlapError(
                f"A batch of {batch} does not go with an order whose rows belong together by {order.grain}."
            )
        self.pack, self.batch, self._order, self._settings = pack, batch, order, settings
        self._flip = one_flip_share(views.values())
        self._is_flipped = {name: bool(view.flip_share) for name, view in views.items()}
        self._keeps_places = getattr(order, "keeps_places", False)
        self._pin = pin
        self.ring = Ring(self._allocate)
        self._orders: dict[int, tuple[Indices, Indices]] = {}
        self._lock = threading.Lock()
        self.oldest = 0
        """Orders of epochs before this one are not needed any more."""
        ahead = settings.read_ahead
        size_bytes, memory = pack.memory.size_bytes, memory_bytes()
        if ahead is None:
            ahead = _READ_AHEAD if size_bytes > memory // 2 else 0
        in_blocks = isinstance(order, BlockShuffle)
        window = order.window_rows if isinstance(order, BlockShuffle) else 0
        self._ahead_rows = max(ahead * batch, -(-window // settings.world))
        held = 2 * self._ahead_rows * settings.world * size_bytes // max(len(pack), 1)  # a window in use, and the next
        # Ranks read the same chunks: what one of them reads past the page cache is not there for the others.
        if ahead and in_blocks and size_bytes > memory and held < memory // 2 and settings.world == 1:
            pack = Resident(pack, held)
        self.read_ahead = ReadAhead(pack, list(views), self._ahead_rows, in_blocks) if ahead else None
        self._fillers: dict[str, Filler] = {name: view.open(pack, name, batch) for name, view in views.items()}

    def _allocate(self) -> list[dict[str, torch.Tensor]]:
        groups = [filler.allocate() for filler in self._fillers.values()]
        return [{k: t.pin_memory() for k, t in g.items()} for g in groups] if self._pin else groups

    def batch_bytes(self) -> int:
        """What a batch takes in memory. Views without buffers make theirs anew, about as large as rows are stored."""
        buffers = [filler.allocate() for filler in self._fillers.values()]
        size = sum(tensor.nbytes for group in buffers for tensor in group.values())
        return size if all(buffers) else size + self.batch * self.pack.memory.size_bytes // max(len(self.pack), 1)

    def after_fork(self) -> None:
        """In a child: locks that threads held which are not here, and what they were to read."""
        self._lock = threading.Lock()
        self.ring.after_fork()
        if self.read_ahead is not None:
            self.read_ahead.after_fork()

    def epoch_rows(self, epoch: int) -> tuple[Indices, Indices]:
        """This rank's rows of an epoch and their places in the order of all ranks."""
        with self._lock:
            found = self._orders.get(epoch)
            if found is None:
                rows = np.asarray(self._order.rows(self.pack, epoch), np.int64)
                s = self._settings
                for old in [e for e in self._orders if e < self.oldest]:
                    del self._orders[old]
                found = share_of_rank(rows, self._order.grain, s.rank, s.world)
                self._orders[epoch] = found  # kept even if it is an old one: somebody went back to it
            return found

    def count(self, epoch: int, drop_last: bool) -> int:
        """Batches of an epoch."""
        rows = len(self.epoch_rows(epoch)[0])
        return rows // self.batch if drop_last else -(-rows // self.batch)

    def make(self, epoch: int, number: int) -> tuple[dict[str, Any], Slot]:
        """The batch and the slot its buffers belong to."""
        slot = self.ring.take()
        rows, places = self.epoch_rows(epoch)
        part = slice(number * self.batch, (number + 1) * self.batch)
        with nullcontext() if self.read_ahead is None else self._read_early(self.read_ahead, epoch, number):
            return self._filled(slot, rows[part], Draws(self._settings.seed, epoch, places[part])), slot

    def _filled(self, slot: Slot, rows: Indices, draws: Draws) -> dict[str, Any]:
        chosen = self.pack.rows(rows)
        flipped, turned, back = 0, (chosen, draws), None
        if self._flip:
            mirrored = draws.uniform("flip") < self._flip
            first, flipped = np.argsort(~mirrored, kind="stable"), int(mirrored.sum())
            turned = chosen[first], draws.take(first)
            if self._keeps_places:
                back = torch.from_numpy(np.argsort(first))
            else:
                chosen, draws = turned
        batch: dict[str, Any] = {}
        for (name, filler), buffers in zip(self._fillers.items(), slot.buffers, strict=True):
            if not self._is_flipped[name]:
                batch |= filler.fill(buffers, chosen, draws, 0)
                continue
            filled = filler.fill(buffers, *turned, flipped)
            batch |= filled if back is None else {k: _in_order(value, back, self._pin) for k, value in filled.items()}
        batch.setdefault("row", torch.from_numpy(chosen))
        return batch

    def _read_early(self, reading: ReadAhead, epoch: int, number: int) -> AbstractContextManager[None]:
        """Ask for the rows some batches on, of the next epoch too where this one ends; entering waits for our own."""
        rows, _ = self.epoch_rows(epoch)
        first = number * self.batch
        place = epoch * len(rows) + first
        begin = first + self._ahead_rows if reading.follows(place) else first
        behind = first + self._ahead_rows + self.batch
        reading.ask(self.pack.numbers(rows[begin:behind]), place)
        if behind > len(rows):
            following, _ = self.epoch_rows(epoch + 1)
            reading.ask(self.pack.numbers(following[max(0, begin - len(rows)) : behind - len(rows)]), place)
        return reading.ready(self.pack.numbers(rows[first : first + self.batch]))


def _in_order(images: torch.Tensor, back: torch.Tensor, pin: bool) -> torch.Tensor:
    """``images[back]`` in the layout that they have; pinned, as what it is copied from, where that was asked for."""
    return torch.index_select(images, 0, back, out=torch.empty_like(images, pin_memory=pin))
