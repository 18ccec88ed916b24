"""A pass whose data set the script changes in its middle, where workers load that it was not made with.

A loader without workers draws each sample from the data set as it is then: a curriculum may make the samples harder
after so many steps. Workers have copies. So the data set is looked at before each batch, and from a change on the rest
of the pass is loaded in the training process: what workers have under way is drawn anew.
"""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hotlap.lever.contract import Target
from hotlap.lever.loader_change import without_workers
from hotlap.lever.quick_look import QuickLook, attributes_within

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

__all__ = ["MidPass"]


class MidPass:
    """Watches the loaders that are added; each that is changed in mid-pass is given back, for good."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._watched: weakref.WeakSet[DataLoader[Any]] = weakref.WeakSet()
        self._followed: weakref.WeakKeyDictionary[Any, _Followed] = weakref.WeakKeyDictionary()
        """Iterators, one of which goes through many passes where its workers stay."""
        self._sent: weakref.WeakKeyDictionary[Any, deque[Any]] = weakref.WeakKeyDictionary()
        """Of an iterator with workers: the indices that were sent to them last, as many as can be under way."""
        target.on_import("torch.utils.data", self._keep_indices)
        target.wrap_iterator(self._begin)

    def add(self, loader: DataLoader[Any]) -> None:
        """A loader that the script made without workers."""
        self._watched.add(loader)

    def _keep_indices(self, data: ModuleType) -> None:
        kind = data.dataloader._BaseDataLoaderIter
        real = kind._next_index

        @functools.wraps(real)
        def next_index(iterator: Any) -> Any:
            index = real(iterator)
            if iterator._num_workers > 0:
                if iterator not in self._sent:
                    self._sent[iterator] = deque(maxlen=iterator._num_workers * iterator._prefetch_factor)
                self._sent[iterator].append(index)
            return index

        self._target.replace(kind, "_next_index", next_index)
        self._target.changed(-1)

    def _begin(self, loader: DataLoader[Any], iterator: Any) -> Any:
        """Only of torch's own iterators, and where batches come in order, is it known which of them are under way."""
        from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter as ByWorkers

        known = isinstance(iterator, ByWorkers) and getattr(iterator, "_in_order", True)
        if loader in self._watched and known and iterator in self._sent:
            if iterator not in self._followed:
                self._followed[iterator] = _Followed(iterator, loader, self._sent[iterator], self._give_back)
            self._followed[iterator].begin(iterator)
        return iterator

    def _give_back(self, loader: Any, iterator: Any) -> None:
        self._watched.discard(loader)
        if loader._iterator is iterator:
            loader._iterator = None
        without_workers(self._target, loader)
        self._target.changed(-3)
        self._target.unfit("the script changes what its data set holds in mid-pass, which worker processes do not see")


class _Followed:
    """Stands where an iterator gets its batches from its workers. Keeps neither that nor the loader alive."""

    def __init__(self, iterator: Any, loader: Any, sent: deque[Any], give_back: Callable[[Any, Any], None]) -> None:
        self._iterator, self._loader = weakref.ref(iterator), weakref.ref(loader)
        self._sent, self._give_back = sent, give_back
        self._kept_apart = iterator.__dict__.get("_next_data")
        self._here: _Here | None = None
        iterator._next_data = self._next_data

    def begin(self, iterator: Any) -> None:
        """A pass: the workers have been given what the data set holds now."""
        dataset, collate = iterator._dataset, iterator._collate_fn
        self._look = QuickLook(lambda: [dataset, collate], attributes_within(dataset, collate))

    def _next_data(self) -> Any:
        iterator: Any = self._iterator()
        if self._here is None:
            if self._look.is_untouched():
                return type(iterator)._next_data(iterator) if self._kept_apart is None else self._kept_apart()
            self._here = _Here(iterator, self._sent)
            if (loader := self._loader()) is not None:
                self._give_back(loader, iterator)
            iterator._shutdown_workers()
        return self._here.next_data(iterator)


class _Here:
    """Goes on in this process: with what is under way, then with what the sampler gives."""

    def __init__(self, iterator: Any, sent: deque[Any]) -> None:
        from torch.utils.data.dataloader import _DatasetKind

        under_way = iterator._send_idx - iterator._rcvd_idx
        self._under_way = deque(list(sent)[len(sent) - under_way :])
        self._fetcher = _DatasetKind.create_fetcher(  # type: ignore[no-untyped-call]
            iterator._dataset_kind, iterator._dataset, iterator._auto_collation, iterator._collate_fn,
            iterator._drop_last,
        )  # fmt: skip

    def next_data(self, iterator: Any) -> Any:
        index = self._under_way.popleft() if self._under_way else iterator._next_index()
        data = self._fetcher.fetch(index)
        if not iterator._pin_memory:
            return data
        from torch.utils.data._utils import pin_memory

        return pin_memory.pin_memory(data, iterator._pin_memory_device)  # type: ignore[no-untyped-call]
