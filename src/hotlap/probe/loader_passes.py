"""One pass through a loader: what it is read for, what it cost to start, and iterators that are no DataLoader's own."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Any, Protocol

from hotlap.probe.recorder import Recorder

__all__ = ["IterState", "LoaderInfo", "WaitingIterator"]


class _Loads(Protocol):
    rec: Recorder

    def next_batch(self, state: IterState, take: Callable[[], Any]) -> Any: ...


class LoaderInfo:
    """One DataLoader: its number, where it was constructed, and whether its batches are trained on (None: unknown)."""

    __slots__ = ("frame", "loader", "number", "training")

    def __init__(self, loader: Any, number: int, frame: int | None) -> None:
        self.loader = weakref.ref(loader)
        self.number = number
        self.frame = frame
        self.training: bool | None = None


class IterState:
    """One pass through a loader."""

    __slots__ = ("batches", "fresh", "info", "lens", "on_kind", "stack", "start_ns")

    def __init__(self, info: LoaderInfo, on_kind: Callable[[LoaderInfo, bool], None]) -> None:
        self.info = info
        self.on_kind = on_kind
        self.start_ns = 0
        """Making the iterator and waiting for the first batch."""
        self.batches = 0
        self.fresh = True
        self.lens: deque[int] = deque()
        self.stack: int | None = None

    def for_validation(self) -> None:
        """Its batches were validated on."""
        self.fresh = False
        if self.info.training is None:
            self.on_kind(self.info, False)


class WaitingIterator:
    """Stands before an iterator that is no DataLoader's own (a lever's), so that waiting for it is seen."""

    def __init__(self, iterator: Any, state: IterState, loads: _Loads) -> None:
        self._iterator = iterator
        self._state = state
        self._loads = loads
        self._take = iterator.__next__

    def __iter__(self) -> WaitingIterator:
        return self

    def __next__(self) -> Any:
        if get_ident() != self._loads.rec.thread:
            return self._take()
        return self._loads.next_batch(self._state, self._take)

    def __len__(self) -> int:
        return len(self._iterator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)
