"""A pass whose data set the script changes in its middle, where workers load that it was not made with.

A loader without workers draws each sample from the data set as it is then, and by the settings of that moment: a
curriculum may make the samples harder after so many steps, or larger. Workers have copies. So the data set is looked
at before each batch, and so is what its code reads of modules and classes, and the model that it may draw with; from a
change on the rest of the pass is loaded in the training process: what workers have under way is drawn anew.
"""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hotlap.lever.contents import version_of
from hotlap.lever.contract import Target
from hotlap.lever.drawing import Drawing
from hotlap.lever.loader_change import without_workers
from hotlap.lever.quick_look import QuickLook, attributes_within

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

__all__ = ["MidPass"]

_WEIGHTS = 8
"""Of models that draw samples, those that are compared before each batch: who trains one changes them all."""


class MidPass:
    """Watches the loaders that are added; each that is changed in mid-pass is given back, for good."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._watched: weakref.WeakKeyDictionary[DataLoader[Any], _Around] = weakref.WeakKeyDictionary()
        self._followed: weakref.WeakKeyDictionary[Any, _Followed] = weakref.WeakKeyDictionary()
        """Iterators, one of which goes through many passes where its workers stay."""
        self._sent: weakref.WeakKeyDictionary[Any, deque[Any]] = weakref.WeakKeyDictionary()
        """Of an iterator with workers: the indices that were sent to them last, as many as can be under way."""
        target.on_import("torch.utils.data", self._keep_indices)
        target.wrap_iterator(self._begin)

    def add(self, loader: DataLoader[Any], drawing: Drawing) -> None:
        """A loader that the script made without workers."""
        self._watched[loader] = _Around(drawing)

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
            self._followed[iterator].begin(iterator, self._watched[loader])
        return iterator

    def _give_back(self, loader: Any, iterator: Any) -> None:
        self._watched.pop(loader, None)
        if loader._iterator is iterator:
            loader._iterator = None
        without_workers(self._target, loader)
        self._target.changed(-3)
        self._target.unfit(
            "the script changes what its samples are drawn from in mid-pass, which worker processes do not see"
        )


class _Around:
    """Variables of modules and classes that the code reads which draws, and weights of models. Keeps no model alive."""

    def __init__(self, drawing: Drawing) -> None:
        self._variables = drawing.variables
        self._weights = [weakref.ref(weight) for weight in drawing.weights()[:_WEIGHTS]]

    def values(self) -> list[Any]:
        return [names.get(name) for names, name in self._variables]

    def marks(self) -> list[Any]:
        """Of the weights: how often each was changed, and its first number, for what is changed by ``.data``."""
        weights = [weight() for weight in self._weights]
        return [(version_of(w), w.detach().reshape(-1)[:1].tolist()) for w in weights if w is not None]


class _Followed:
    """Stands where an iterator gets its batches from its workers. Keeps neither that nor the loader alive."""

    def __init__(self, iterator: Any, loader: Any, sent: deque[Any], give_back: Callable[[Any, Any], None]) -> None:
        self._iterator, self._loader = weakref.ref(iterator), weakref.ref(loader)
        self._sent, self._give_back = sent, give_back
        self._kept_apart = iterator.__dict__.get("_next_data")
        self._here: _Here | None = None
        iterator._next_data = self._next_data

    def begin(self, iterator: Any, around: _Around) -> None:
        """A pass: the workers have been given what the data set holds now, and what is around it."""
        dataset, collate = iterator._dataset, iterator._collate_fn
        self._look = QuickLook(lambda: [dataset, collate], attributes_within(dataset, collate))
        self._around, self._before = QuickLook(around.values, attributes_within(*around.values())), around.marks()
        self._marks = around.marks

    def _next_data(self) -> Any:
        iterator: Any = self._iterator()
        if self._here is None:
            if self._look.is_untouched() and self._around.is_untouched() and self._marks() == self._before:
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
