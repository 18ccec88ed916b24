"""Rows of a ``TensorDataset``: a batch by one gather per tensor."""

from __future__ import annotations

from typing import Any

from hotlap.lever.gathered import Gather, base_rows, plainly_stacked

__all__ = ["can_gather", "gather_from"]


def can_gather(dataset: Any, collate: Any) -> bool:
    """Whether batches are samples of a ``TensorDataset`` (or Subsets of one), stacked by torch's own collate function.

    Subclasses are out, and so is a method or a collate rule that somebody has replaced.
    """
    from torch.utils.data import Subset, TensorDataset

    if not plainly_stacked(collate):
        return False
    own: list[Any] = [TensorDataset.__getitem__]
    while type(dataset) is Subset:
        dataset, own = dataset.dataset, [*own, Subset.__getitems__]
    plain = all(getattr(f, "__globals__", {}).get("__name__") == "torch.utils.data.dataset" for f in own)
    return type(dataset) is TensorDataset and not hasattr(dataset, "__getitems__") and plain


def gather_from(dataset: Any) -> Gather:
    """Batches of ``dataset``; None where tensors or indices are not of the plainest kind."""

    def gather(indices: list[Any]) -> list[Any] | None:
        found = base_rows(dataset, indices)
        return None if found is None else _rows(found[0].tensors, found[1])

    return gather


def _rows(tensors: Any, indices: list[int]) -> list[Any] | None:
    import torch
    from torch.utils.data import get_worker_info

    shared = get_worker_info() is not None
    batch = []
    for tensor in tensors:
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
