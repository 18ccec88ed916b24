"""``Loader``: whole batches from a pack, made ahead by threads, ready where the training wants them."""

from __future__ import annotations

import os
import time
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from hotlap.pack import kernel
from hotlap.pack.batches import BatchMaker
from hotlap.pack.device import DeviceCopy, known_device
from hotlap.pack.order.contract import Order, mark_of
from hotlap.pack.order.plain import Shuffle
from hotlap.pack.placement import Placement
from hotlap.pack.reader import Pack
from hotlap.pack.resuming import check_state
from hotlap.pack.ring import Slot
from hotlap.pack.settings import LoaderSettings
from hotlap.pack.threads import most_threads, one_thread
from hotlap.pack.views.contract import View
from hotlap.pack.views.plain import Whole
from hotlap.records.errors import HotlapError

__all__ = ["Loader"]

_open: weakref.WeakSet[Loader] = weakref.WeakSet()


def _after_fork() -> None:
    for loader in list(_open):
        loader.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@dataclass
class _Made:
    """A batch, the slot its buffers belong to, and the event after which it lies on the device, if it is to."""

    batch: dict[str, Any]
    slot: Slot
    copied: torch.cuda.Event | None = None


class Loader:
    """Batches of a pack, epoch after epoch: ``for batch in loader`` gives dictionaries.

    pack        a folder, or an opened :class:`Pack`
    batch_size  rows per batch
    views       column -> how to read it (:class:`Image`, :class:`Clip`, :class:`Padded`, …); other columns are left
                out, except that without ``views`` every column comes as stored, and that ``{"label": None}`` means that
    order       :class:`Shuffle` (default), :class:`Sequential`, :class:`BlockShuffle`, or a sampler
    device      where batches are to lie: the CPU, or CUDA, to which they are copied ahead on a stream of their own
    drop_last   leave out an incomplete last batch

    Each batch also holds ``row``, the numbers of its rows. ``state_dict`` and ``load_state_dict`` resume in the middle
    of an epoch with the very batch that would have come next. Batches may be kept: a buffer that somebody holds is not
    written again.
    """

    def __init__(self, pack: str | Path | Pack, batch_size: int, views: Mapping[str, View | None] | None = None,
                 order: Order | None = None, device: str | torch.device = "cpu", drop_last: bool = False,
                 settings: LoaderSettings | None = None) -> None:  # fmt: skip
        self.pack = pack if isinstance(pack, Pack) else Pack(pack)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.settings = settings or LoaderSettings()
        self._check()
        asked: Mapping[str, View | None] = views if views is not None else dict.fromkeys(self.pack.columns)
        where = known_device(device)
        self._order = order or Shuffle(seed=self.settings.seed)
        self._order_mark = mark_of(self._order)
        self._maker = BatchMaker(self.pack, batch_size, {name: view or Whole() for name, view in asked.items()},
                                 self._order, self.settings, where.type == "cuda")  # fmt: skip
        self._copy = DeviceCopy(where) if where.type == "cuda" else None
        mode = "background" if self._copy and self.settings.mode == "auto" else self.settings.mode
        most = most_threads(self._maker.batch_bytes(), self.settings.ahead)
        self.placement = Placement(mode, self.settings.threads, most, self.settings.ahead)
        self._threads: ThreadPoolExecutor | None = None
        self._threads_count = 0
        self._made: deque[tuple[tuple[int, int], Future[_Made]]] = deque()
        self._taken = 0
        """Batches that have left ``_made``."""
        self.epoch = 0
        self._next = 0
        self._between = True
        """No epoch has been begun and left: iterating goes on at ``epoch``, batch ``_next``."""
        self._resumed = False
        _open.add(self)

    def _check(self) -> None:
        s = self.settings
        least = min(s.ahead, 1 if s.threads is None else s.threads)
        if s.mode not in ("auto", "inline", "background") or least < 1:
            raise HotlapError(f"{s}: mode is auto, inline or background; threads and ahead are at least 1.")
        if not 0 <= s.rank < s.world:
            raise HotlapError(f"Rank {s.rank} of {s.world}: ranks count from 0.")

    def __len__(self) -> int:
        return self._maker.count(self.epoch, self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """The epoch that the next pass reads (passes count on by themselves).

        Right after ``load_state_dict`` the epoch that was left goes on where it was left.
        """
        if self._resumed and epoch == self.epoch:
            return
        if (epoch, 0) != (self.epoch, self._next):
            self._forget()
        self.epoch, self._next, self._between = epoch, 0, True

    def state_dict(self) -> dict[str, int]:
        """Where the loader stands; plain numbers."""
        return {"epoch": self.epoch, "batch": self._next, "batch_size": self.batch_size, "rows": len(self.pack),
                "world": self.settings.world, "seed": self.settings.seed,
                "order": self._order_mark}  # fmt: skip

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on where ``state`` was taken. Refuses what would read other rows than were left."""
        check_state(state, self.state_dict(), self._order)
        self._forget()
        self.epoch, self._next, self._between = int(state["epoch"]), int(state["batch"]), True
        self._resumed = True

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if not self._between:  # left in the middle: a new pass is a new epoch, as with a DataLoader
            self.set_epoch(self.epoch + 1)
        self._between = self._resumed = False
        self._maker.oldest = self.epoch
        whole, asked = self._next == 0, time.perf_counter()
        while self._next < len(self):
            made = self._take()
            waited_s = time.perf_counter() - asked
            batch = made.batch
            if self._copy is not None and made.copied is not None:
                batch = self._copy.hand_over(batch, made.copied)
            self._give_back(made.slot)
            self._next += 1
            is_last = self._next >= len(self)
            if is_last:
                self.epoch, self._next, self._between = self.epoch + 1, 0, True
            yield batch
            now = time.perf_counter()
            self._note(now - asked, waited_s)
            asked = now
            if is_last:
                if whole:
                    self.placement.ask_again()
                return

    def _note(self, wall_s: float, waited_s: float) -> None:
        """Times for the placement, but for those while the compiler has a core and torch does what the kernel will."""
        if self.placement.decided or kernel.state() == "compiling":
            return
        self.placement.note(wall_s, waited_s)
        if self.placement.decided:
            self._maker.ring.release()  # the ways that were tried may have taken more slots

    def _take(self) -> _Made:
        """The next batch; in the background, further ones are begun first."""
        if not self.placement.background and not self._made:
            return self._moved(_Made(*self._maker.make(self.epoch, self._next)))
        if self.placement.background:
            self._begin()
        key, future = self._made.popleft()
        assert key == (self.epoch, self._next)
        self._taken += 1
        if self.placement.background:
            self._begin()
        try:
            made = self._moved(future.result())
        except BaseException:  # damaged, or Ctrl-C while it was made: the next pass begins with it again
            self._forget()
            raise
        for _, coming in islice(self._made, self.settings.ahead):
            if coming.done() and coming.exception() is None:
                self._moved(coming.result())
        return made

    def _moved(self, made: _Made) -> _Made:
        """On its way to the device."""
        if self._copy is not None and made.copied is None:
            made.batch, made.copied = self._copy.start(made.batch, made.slot)
        return made

    def _begin(self) -> None:
        threads = self.placement.threads
        if self._threads is None or self._threads_count != threads:
            self._stop_threads(wait=False)
            begin = self._copy.enter_thread if self._copy is not None else None
            self._threads, self._threads_count = ThreadPoolExecutor(threads, "hotlap-pack", begin), threads
        while len(self._made) < self.settings.ahead + threads - 1:
            epoch, number = self._made[-1][0] if self._made else (self.epoch, self._next - 1)
            number += 1
            if number >= self._maker.count(epoch, self.drop_last):
                if self._maker.count(epoch + 1, self.drop_last) == 0:
                    return
                epoch, number = epoch + 1, 0  # no gap between epochs
            turn = self._taken + len(self._made)
            self._made.append(((epoch, number), self._threads.submit(self._make_apart, epoch, number, turn)))

    def _make_apart(self, epoch: int, number: int, turn: int) -> _Made:
        """In a thread of its own: a team of threads for each would make both teams spin.

        The device holds as many batches as are to lie ahead, however many threads make them.
        """
        with one_thread():
            made = _Made(*self._maker.make(epoch, number))
            return self._moved(made) if turn < self._taken + self.settings.ahead else made

    def _forget(self) -> None:
        """Let go of batches made ahead."""
        while self._made:
            _, future = self._made.popleft()
            if not future.cancel() and future.exception() is None:  # a batch that nobody will see may have failed
                self._give_back(future.result().slot)

    def _give_back(self, slot: Slot) -> None:
        self._maker.ring.give_back(slot, self.settings.ahead + max(self.placement.threads, 1) + 2)

    def _stop_threads(self, wait: bool) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait)
            self._threads = None

    def after_fork(self) -> None:
        """In a child: the threads stayed with the parent, and what they were making."""
        self._threads = None
        self._made.clear()
        self._maker.after_fork()

    def close(self) -> None:
        """Stop the threads. (They also stop when the process ends.)"""
        self._forget()
        if self._maker.read_ahead is not None:
            self._maker.read_ahead.close()
        self._stop_threads(wait=True)
