"""Samples of like length put into one batch: taken out of batches as the loader made them, and dealt anew.

Each batch that comes in lets one go out, of the sample that has waited longest and of those nearest to it in length. So
each sample is given out once, none waits longer than there are samples in the pool, and there are as many batches.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from hotlap.lever.batch_parts import ROWS, Kinds, Path, batch_of, kinds_of, leaves, samples_of
from hotlap.lever.trimming import Content, content_of

if TYPE_CHECKING:
    from torch import Tensor
    from torch.utils.data import DataLoader

__all__ = ["Dealing", "rows_to_deal"]

LOOKED_AT = 2
"""Batches that are handed on as they are, while what their parts are is learned."""
MOST_BYTES = 1 << 30
"""Of samples that wait: the pool is smaller where they are large."""


def rows_to_deal(loader: DataLoader[Any]) -> int | None:
    """Samples of a batch, where torch's own samplers shuffle: another one may mean which samples share a batch.

    A batch sampler that only adds something to torch's (an epoch, as sentence-transformers' does) draws as that does.

    Not of torchdata's stateful loader: a state saved in the middle of an epoch would leave out the samples that wait.
    """
    from torch.utils.data import BatchSampler, RandomSampler, SubsetRandomSampler

    sampler = loader.batch_sampler
    if any(base.__name__ == "StatefulDataLoader" for base in type(loader).__mro__):
        return None
    if not isinstance(sampler, BatchSampler) or type(sampler).__iter__ is not BatchSampler.__iter__:
        return None
    if not isinstance(sampler.sampler, RandomSampler | SubsetRandomSampler) or sampler.batch_size < 2:
        return None
    return int(sampler.batch_size)


class Dealing:
    """Gives out the samples of ``iterator``, batches of ``rows``, from a pool of so many ``batches``.

    ``failed`` hears of what went wrong with a batch; it and all later ones are handed on as they are.
    """

    def __init__(self, iterator: Iterator[Any], rows: int, batches: int, failed: Callable[[Exception], None]) -> None:
        self._iterator, self._rows, self._failed = iterator, rows, failed
        self._room = rows * batches
        self._looked_at: list[Any] = []
        self._kinds: Kinds | None = None
        self._fills: dict[Path, Any] = {}
        self._shapes: dict[Path, Any] = {}
        self._pool: list[tuple[tuple[int, ...], dict[Path, Any]]] = []
        """How long a sample is, and its share of each part, the oldest first."""
        self._like: Any = None
        self._odd: list[Any] = []
        """A batch that could not be taken apart: it goes out when the pool is empty."""
        self._given_up = self._ended = False

    def __iter__(self) -> Dealing:
        return self

    def __next__(self) -> Any:
        if self._given_up and not self._pool and not self._odd:
            return next(self._iterator)
        if self._kinds is None:
            batch = next(self._iterator)
            self._tried(self._learn, batch)
            return batch
        for _ in range(2):  # one more than goes out, until the pool is full
            if self._ended or self._odd or len(self._pool) >= self._room:
                break
            try:
                batch = next(self._iterator)
            except StopIteration:
                self._ended = True
                break
            if not self._tried(self._take_in, batch):
                self._odd.append(batch)
        if self._pool:
            return self._deal()
        if self._odd:
            return self._odd.pop()
        raise StopIteration

    def _tried(self, look: Callable[[Any], bool], batch: Any) -> bool:
        try:
            return look(batch)
        except Exception as err:  # whatever the script's own types raise
            self._given_up = True
            self._failed(err)
            return False

    def _learn(self, batch: Any) -> bool:
        self._looked_at.append(batch)
        if len(self._looked_at) == LOOKED_AT:
            self._kinds = kinds_of(self._looked_at, self._rows)
            told = [content_of(seen) for seen in self._looked_at]
            self._given_up = self._kinds is None or None in told
            self._looked_at = []
        return True

    def _take_in(self, batch: Any) -> bool:
        """Its samples wait in the pool; False: it could not be taken apart."""
        assert self._kinds is not None
        content = content_of(batch)
        samples = samples_of(batch, self._kinds)
        if content is None or samples is None or len(content.ends) != self._rows:
            return False
        shapes = {path: samples[0][path].shape[1:] for path, kind in self._kinds.of.items() if kind == ROWS}
        self._learn_fills(batch, content)
        if self._pool and any(shapes[p] != self._shapes[p] and self._fills.get(p) is None for p in shapes):
            return False
        self._room = min(self._room, max(2, MOST_BYTES // max(1, _bytes(samples))) * self._rows)
        self._shapes, self._like = shapes, batch
        self._pool += zip((tuple(size) for size in content.measure.tolist()), samples, strict=True)
        return True

    def _learn_fills(self, batch: Any, content: Content) -> None:
        """What stands behind the content of each tensor; None where that is not one value."""
        assert self._kinds is not None
        for path, value in leaves(batch, self._rows):
            if self._kinds.of[path] != ROWS or path in self._fills:
                continue
            behind = _behind(value, content)
            if behind is not None and behind.numel():
                one = behind.flatten()[0]
                self._fills[path] = one.item() if bool((behind == one).all()) else None

    def _deal(self) -> Any:
        assert self._kinds is not None
        first, *rest = self._pool
        near = heapq.nsmallest(self._rows - 1, range(len(rest)), lambda k: _far(first[0], rest[k][0]))
        taken = set(near)
        batch = batch_of([first[1], *(rest[k][1] for k in near)], self._kinds, self._like, self._fills)
        self._pool = [waiting for k, waiting in enumerate(rest) if k not in taken]
        return batch


def _far(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))


def _bytes(samples: list[dict[Path, Any]]) -> int:
    import torch

    return sum(share.nbytes for s in samples for share in s.values() if isinstance(share, torch.Tensor))


def _behind(value: Tensor, content: Content) -> Tensor | None:
    """What of a tensor lies behind the content of its samples; None where it has no such dimension."""
    import torch

    sizes, ends = content.sizes, content.ends
    if not content.is_image:
        if value.dim() < 2 or value.shape[1] not in sizes:
            return None
        return value[torch.arange(value.shape[1]) >= ends[:, [sizes.index(value.shape[1])]]]
    if value.dim() not in (3, 4) or tuple(value.shape[-2:]) != sizes:
        return None
    tall, wide = (torch.arange(size)[None] >= ends[:, k, None] for k, size in enumerate(sizes))
    outside = tall[:, :, None] | wide[:, None, :]
    return value[outside] if value.dim() == 3 else value.movedim(1, -1)[outside]
