"""A batch of a ``TensorDataset`` by one gather per tensor, where that is the same as its samples stacked."""

from __future__ import annotations

import numbers
from collections.abc import Callable, MutableSet
from typing import Any

from hotlap.lever.sample_codec import same_bits

__all__ = ["GatheredCollate", "GatheredDataset", "can_gather"]

CHECKED = 3
"""Batches of a data set that are made both ways and compared, before the gather is believed."""


def can_gather(dataset: Any, collate: Any) -> bool:
    """Whether batches are samples of a ``TensorDataset`` (or Subsets of one), stacked by torch's own collate function.

    Subclasses are out, and so is a method or a collate rule that somebody has replaced.
    """
    from torch import Tensor
    from torch.utils.data import Subset, TensorDataset
    from torch.utils.data._utils import collate as rules

    if collate is not rules.default_collate:
        return False
    if rules.default_collate_fn_map.get(Tensor) is not rules.collate_tensor_fn:
        return False
    own: list[Any] = [TensorDataset.__getitem__]
    while type(dataset) is Subset:
        dataset, own = dataset.dataset, [*own, Subset.__getitems__]
    plain = all(getattr(f, "__globals__", {}).get("__name__") == "torch.utils.data.dataset" for f in own)
    return type(dataset) is TensorDataset and not hasattr(dataset, "__getitems__") and plain


class _Ready:
    """A batch that needs no collating any more."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch


class GatheredCollate:
    """The collate function, which lets a batch pass that is ready."""

    def __init__(self, collate: Callable[[Any], Any]) -> None:
        self._collate = collate

    def __call__(self, samples: Any) -> Any:
        return samples.batch if type(samples) is _Ready else self._collate(samples)


class GatheredDataset:
    """What a loader's fetcher sees in place of the data set."""

    def __init__(self, dataset: Any, collate: Any, proven: MutableSet[Any], used: Callable[[], None]) -> None:
        self._dataset = dataset
        self._collate = collate
        self._proven = proven
        """Data sets whose first batches were the same both ways."""
        self._used = used
        self._left = CHECKED
        self._same = True

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._dataset[index]

    def __getitems__(self, indices: list[Any]) -> Any:
        batch = _gather(self._dataset, indices) if self._same else None
        if batch is None:
            return self._samples(indices)
        if self._dataset not in self._proven:
            slow = self._collate(self._samples(indices))
            self._same = _same(batch, slow)
            self._left -= 1
            if self._same and self._left == 0:
                self._proven.add(self._dataset)
            return _Ready(slow)
        self._used()
        return _Ready(batch)

    def _samples(self, indices: list[Any]) -> list[Any]:
        """As torch's fetcher draws them."""
        if getattr(self._dataset, "__getitems__", None):
            samples: list[Any] = self._dataset.__getitems__(indices)
            return samples
        return [self._dataset[index] for index in indices]


def _same(fast: list[Any], slow: Any) -> bool:
    return (
        type(slow) is list
        and same_bits([t.cpu() for t in fast], [t.cpu() for t in slow])
        and all(a.stride() == b.stride() and a.device == b.device for a, b in zip(fast, slow, strict=True))
    )


def _gather(dataset: Any, indices: list[Any]) -> list[Any] | None:
    """The batch, or None where tensors or indices are not of the plainest kind."""
    import torch
    from torch.utils.data import Subset, get_worker_info

    while type(dataset) is Subset:
        held = dataset.indices
        try:
            indices = [held[index] for index in indices]
        except (IndexError, TypeError):  # the script's to hear of, in torch's words
            return None
        dataset = dataset.dataset
    if any(type(i) is not int and (type(i) is bool or not isinstance(i, numbers.Integral)) for i in indices):
        return None
    count = len(dataset)
    if not indices or not 0 <= min(indices) <= max(indices) < count:
        return None
    shared = get_worker_info() is not None
    batch = []
    for tensor in dataset.tensors:
        plain = type(tensor) is torch.Tensor and tensor.layout is torch.strided and not tensor.is_quantized
        if not plain or tensor.requires_grad or not tensor.is_contiguous():
            return None
        rows = torch.tensor(indices, dtype=torch.int64, device=tensor.device)
        if shared:  # as torch's collate function in a worker: the batch is made where the training process finds it
            size = [len(indices), *tensor.shape[1:]]
            storage = tensor._typed_storage()._new_shared(tensor[:1].numel() * len(indices), device=tensor.device)
            out = tensor.new(storage).resize_(*size)
            batch.append(torch.index_select(tensor, 0, rows, out=out))
        else:
            batch.append(torch.index_select(tensor, 0, rows))
    return batch
