"""One pass through a loader: what it is read for, what it cost to start, and iterators that are no DataLoader's own."""

from __future__ import annotations

import functools
import os
import weakref
from collections import deque
from collections.abc import Callable
from threading import get_ident
from types import CodeType, FunctionType, MethodType
from typing import Any, Protocol

from hotlap.probe.batches import batch_samples
from hotlap.probe.own_frames import strip
from hotlap.probe.recorder import Recorder

__all__ = ["IterState", "LoaderInfo", "WaitingIterator", "loader_facts"]


class _Loads(Protocol):
    rec: Recorder

    def next_batch(self, state: IterState, take: Callable[[], Any]) -> Any: ...


class LoaderInfo:
    """One DataLoader: its number, where it was constructed, and whether its batches are trained on (None: unknown)."""

    __slots__ = ("facts", "frame", "has_rows", "loader", "number", "sample_bytes", "training")

    def __init__(self, loader: Any, number: int, frame: int | None) -> None:
        self.loader = weakref.ref(loader)
        self.number = number
        self.frame = frame
        self.training: bool | None = None
        self.facts: dict[str, Any] | None = None
        """Taken at the first pass: a loader made in the ``for`` line itself is gone once its iterator is there."""
        self.sample_bytes: int | None = None
        """Of its first batch."""
        self.has_rows = False
        """Whether the first tensor of a batch had a row for each of the samples that were asked for."""

    def samples_in(self, batch: Any, most: int) -> int:
        """Samples of a batch of so many that were asked for (0: not known). They are fewer only where its batches have
        shown a row for each: the first dimension may be time, or one for them all."""
        try:
            found = batch_samples(batch)
        except Exception:  # an object of the script's that does not like to be looked at
            return most
        if not most:
            return found
        self.has_rows = self.has_rows or found == most
        return found if self.has_rows and 0 < found < most else most


MAX_COLLATES = 4
"""Functions that a loader's collate function is looked for in: a trainer's object around a user's, and to spare."""


def _collate_code(collate: Any) -> list[list[Any]]:
    """File, function, first and last line of what a collate function runs, unless its name says that it collates.

    Looks at types alone, and calls nothing of the script's: through partials, methods, decorators, callable objects,
    and objects that hold another collate function (as transformers' Trainer puts around the user's).
    """
    found: list[list[Any]] = []
    waiting = [collate]
    for _ in range(MAX_COLLATES):
        given = waiting.pop(0) if waiting else None
        code = None
        if isinstance(given, functools.partial):
            waiting.append(given.func)
        elif type(given) is MethodType:
            waiting.append(given.__func__)
        elif type(given) is FunctionType:
            code = given.__code__
            waiting += [value for name, value in vars(given).items() if name == "__wrapped__"]
        elif given is not None and not isinstance(given, type):
            call = getattr(type(given), "__call__", None)  # noqa: B004  # of the class, for its code
            code = call.__code__ if type(call) is FunctionType else None
            inner = getattr(given, "__dict__", None)
            waiting += [value for name, value in inner.items() if "collat" in name] if type(inner) is dict else []
        if type(code) is CodeType and "collate" not in code.co_name:
            last = max((line for *_, line in code.co_lines() if line), default=code.co_firstlineno)
            file = code.co_filename if code.co_filename.startswith("<") else os.path.abspath(code.co_filename)
            found.append([file, code.co_name, code.co_firstlineno, last])
    return found


def loader_facts(loader: Any, number: int) -> dict[str, Any]:
    iterable = loader._dataset_kind == 1
    length = batches = None
    if not iterable:  # asking an iterable data set's loader for its length changes what it later warns about
        try:
            length = _length(loader)
            batches = len(loader) if _tells_length(loader) else None
        except Exception:  # the user's own __len__: whatever it raises, the length is not known
            length = batches = None
    sampler = loader.batch_sampler
    collate = _collate_code(loader.collate_fn)
    return {
        "id": number,
        "num_workers": loader.num_workers,
        "batch_size": loader.batch_size if loader.batch_size is not None else getattr(sampler, "batch_size", None),
        "persistent_workers": loader.persistent_workers,
        "prefetch_factor": loader.prefetch_factor,
        "pin_memory": bool(loader.pin_memory),
        "dataset": type(loader.dataset).__name__,
        "dataset_len": length,
        "iterable": iterable,
        "shuffled": _shuffled(sampler),
        "batches_per_epoch": batches,
        **({"collate": collate} if collate else {}),
    }


def _length(loader: Any) -> int | None:
    """Of the data set, where torch asks for it as well, or where nothing but attributes is looked at to tell: a length
    that opens a file would open it here, and in all workers that are forked after that."""
    from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler

    dataset, batches = loader.dataset, loader.batch_sampler
    sampler = batches.sampler if type(batches) is BatchSampler else None if batches is not None else loader.sampler
    if type(sampler) not in (RandomSampler, SequentialSampler, DistributedSampler) and not _is_looked_up(dataset):
        return None
    return len(dataset)


def _tells_length(loader: Any) -> bool:
    """Whether nothing but attributes is looked at to tell how many batches there are: a sampler of the script's may
    draw its batches to count them, and torch never asks for that."""
    from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler

    samplers = [loader.sampler] if loader.batch_sampler is None else [loader.batch_sampler]
    samplers += [batches.sampler for batches in samplers if type(batches) is BatchSampler]
    torchs = (BatchSampler, RandomSampler, SequentialSampler, DistributedSampler)
    return all(type(one) in torchs or _is_looked_up(one) for one in samplers)


def _is_looked_up(sized: Any) -> bool:
    """Whether its length is told by attributes of its own, and arithmetic."""
    code = getattr(getattr(type(sized), "__len__", None), "__code__", None)
    known = {"len", "shape", "size", "min", "max", "ceil", "floor", "math", "int", *getattr(sized, "__dict__", ())}
    return code is None or known.issuperset(code.co_names)


def _shuffled(batch_sampler: Any) -> bool:
    """Whether torch's own samplers shuffle, so that any samples may share a batch; also below a batch sampler that
    draws as torch's and adds something to it (an epoch). ``lever/dealing.py`` asks the same where it deals."""
    from torch.utils.data import BatchSampler, RandomSampler, SubsetRandomSampler

    if not isinstance(batch_sampler, BatchSampler) or type(batch_sampler).__iter__ is not BatchSampler.__iter__:
        return False
    return isinstance(batch_sampler.sampler, RandomSampler | SubsetRandomSampler)


class IterState:
    """One pass through a loader."""

    __slots__ = (
        "batches", "fresh", "indices_ns", "info", "iterable", "lens", "lens_known", "on_kind", "stack", "start_ns"
    )  # fmt: skip

    def __init__(self, info: LoaderInfo, on_kind: Callable[[LoaderInfo, bool], None]) -> None:
        self.info = info
        self.on_kind = on_kind
        self.start_ns = 0
        """Making the iterator and waiting for workers' first batch; without workers, for its indices alone: what comes
        after these is the loading that each batch takes."""
        self.indices_ns = 0
        """When the first batch's indices had come."""
        self.batches = 0
        self.fresh = True
        self.lens: deque[int] = deque()
        """Samples of the batches that are under way, by the length of their index lists."""
        self.lens_known = False
        self.iterable = bool(info.facts and info.facts["iterable"])
        """Whether these are the most that a batch may hold: an iterable data set ends when it ends."""
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
        try:
            if get_ident() != self._loads.rec.thread:
                return self._take()
            return self._loads.next_batch(self._state, self._take)
        except BaseException as err:
            strip(err)
            raise

    def __len__(self) -> int:
        return len(self._iterator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)
