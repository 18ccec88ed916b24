"""Whether a DataLoader may be given worker processes."""

from __future__ import annotations

import multiprocessing
import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

__all__ = ["can_use_workers", "lies_on_device"]


def can_use_workers(loader: DataLoader[Any]) -> bool:
    """Not an IterableDataset (each worker would yield all of it), no device tensors, and picklable unless forked."""
    from torch.utils.data import IterableDataset

    if isinstance(loader.dataset, IterableDataset):
        return False
    if lies_on_device(loader.dataset):
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


def lies_on_device(dataset: Any) -> bool:
    """Whether the data set holds tensors of a device, by themselves or in a tuple or list (as TensorDataset does)."""
    import torch

    own = getattr(dataset, "__dict__", {}).values()  # a list is a data set too
    held = [part for value in own for part in (value if isinstance(value, tuple | list) else (value,))]
    return any(isinstance(part, torch.Tensor) and part.device.type != "cpu" for part in held)
