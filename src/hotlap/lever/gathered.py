"""Batches that a loader's fetcher gathers from rows in memory, where that is the same as samples stacked one by one."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hotlap.lever.contract import Target
from hotlap.lever.nested_rows import Unfit, taken_apart
from hotlap.lever.sample_codec import same_bits

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Gather",
    "GatheredDataset",
    "Trust",
    "base_of",
    "base_rows",
    "fetch_gathered",
    "plainly_stacked",
    "same_batches",
]

CHECKED = 3
"""Batches of a data set that are made both ways and compared, before the gather is believed."""

Gather = Callable[[list[Any]], Any]
"""The batch of these indices, put together; None where it cannot be gathered, and samples are to be drawn."""


def plainly_stacked(collate: Any) -> bool:
    """Whether this is torch's own collate function, with nobody's rule for tensors in it."""
    from torch import Tensor
    from torch.utils.data._utils import collate as rules

    own = rules.default_collate_fn_map.get(Tensor) is rules.collate_tensor_fn
    return own and collate is rules.default_collate


def base_of(dataset: Any) -> Any:
    """The data set below torch's Subsets (not those of a class of the script's own)."""
    from torch.utils.data import Subset

    while type(dataset) is Subset:
        dataset = dataset.dataset
    return dataset


def base_rows(dataset: Any, indices: list[Any]) -> tuple[Any, list[int]] | None:
    """The data set below torch's Subsets, and the indices there; None where one is no plain index of it."""
    from torch.utils.data import Subset

    while type(dataset) is Subset:
        held = dataset.indices
        try:
            indices = [held[index] for index in indices]
        except (IndexError, TypeError):  # the script's to hear of, in torch's words
            return None
        dataset = dataset.dataset
    if any(type(i) is not int and (type(i) is bool or not isinstance(i, numbers.Integral)) for i in indices):
        return None
    if not indices or not 0 <= min(indices) <= max(indices) < len(dataset):
        return None
    return dataset, indices


class _Ready:
    """A batch that needs no collating any more."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch


class _Collate:
    """The collate function, which lets a batch pass that is ready."""

    def __init__(self, collate: Callable[[Any], Any]) -> None:
        self._collate = collate

    def __call__(self, samples: Any) -> Any:
        return samples.batch if type(samples) is _Ready else self._collate(samples)


class Trust:
    """Whether the gathered batches of a data set are those that are stacked; ``differs`` is called if they are not."""

    def __init__(self, differs: Callable[[], None] | None = None) -> None:
        self.differs = differs
        self.left = CHECKED
        """Batches still to be made both ways."""
        self.same = True


class GatheredDataset:
    """What a loader's fetcher sees in place of the data set."""

    def __init__(self, dataset: Any, collate: Any, gather: Gather, trust: Trust, used: Callable[[], None]) -> None:
        self._dataset = dataset
        self._collate = collate
        self._gather = gather
        self._trust = trust
        self._used = used

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._dataset[index]

    def __getitems__(self, indices: list[Any]) -> Any:
        trust = self._trust
        batch = self._gather(indices) if trust.same else None
        if batch is None:
            return self._samples(indices)
        if trust.left > 0:
            slow = self._collate(self._samples(indices))
            trust.same = same_batches(batch, slow)
            trust.left -= 1
            if trust.differs is not None and not trust.same:
                trust.differs()
            return _Ready(slow)
        self._used()
        return _Ready(batch)

    def _samples(self, indices: list[Any]) -> list[Any]:
        """As torch's fetcher draws them."""
        if getattr(self._dataset, "__getitems__", None):
            samples: list[Any] = self._dataset.__getitems__(indices)
            return samples
        return [self._dataset[index] for index in indices]


def same_batches(fast: Any, slow: Any) -> bool:
    """Equal bit for bit, in the same form, and in memory alike."""
    ours: list[Tensor] = []
    theirs: list[Tensor] = []
    try:
        if taken_apart(fast, ours) != taken_apart(slow, theirs):
            return False
    except Unfit:
        return False
    return same_bits([t.cpu() for t in ours], [t.cpu() for t in theirs]) and all(
        a.stride() == b.stride() and a.device == b.device for a, b in zip(ours, theirs, strict=True)
    )


def fetch_gathered(target: Target, choose: Callable[[Any, Any], GatheredDataset | None]) -> None:
    """From now on, fetchers of map-style data sets get what ``choose(dataset, collate)`` gives in the data set's place.

    Counts no change: a gathered batch does, by the ``used`` of its data set.
    """
    from torch.utils.data._utils import fetch

    real = fetch._BaseDatasetFetcher.__init__

    @functools.wraps(real)
    def init(self: Any, dataset: Any, auto_collation: Any, collate_fn: Any, drop_last: Any) -> None:
        if auto_collation and type(self) is fetch._MapDatasetFetcher:
            chosen = choose(dataset, collate_fn)
            if chosen is not None:
                dataset, collate_fn = chosen, _Collate(collate_fn)
        real(self, dataset, auto_collation, collate_fn, drop_last)

    target.replace(fetch._BaseDatasetFetcher, "__init__", init)
    target.changed(-1)
