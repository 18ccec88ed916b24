"""Whether a DataLoader may be given worker processes."""

from __future__ import annotations

import multiprocessing
import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

__all__ = ["can_use_workers"]


def can_use_workers(loader: DataLoader[Any]) -> bool:
    """Not an IterableDataset (each worker would yield all of it), no device tensors, and picklable unless forked."""
    import torch
    from torch.utils.data import IterableDataset

    if isinstance(loader.dataset, IterableDataset):
        return False
    own = getattr(loader.dataset, "__dict__", {})  # a list is a data set too
    if any(isinstance(v, torch.Tensor) and v.device.type != "cpu" for v in own.values()):
        return False
    context = loader.multiprocessing_context
    method = context.get_start_method() if context is not None else multiprocessing.get_start_method()
    if method == "fork" or loader.num_workers > 0:
        return True
    try:
        pickle.dumps((loader.dataset, loader.collate_fn, loader.worker_init_fn))
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True
