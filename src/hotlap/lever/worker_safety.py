"""Whether a DataLoader may be given worker processes."""

from __future__ import annotations

import io
import multiprocessing
import pickle
import tarfile
import zipfile
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hotlap.lever.open_files import is_of
from hotlap.lever.watched_kinds import attributes_of, in_slots

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

__all__ = ["can_use_workers", "holds_open_file", "lies_on_device"]

_OF_LIBRARIES = {
    "h5py": ("Group", "Dataset"),
    "lmdb": ("Environment", "Transaction"),
    "sqlite3": ("Connection",),
    "numpy.lib.npyio": ("NpzFile",),
}
_PLAIN = (str, bytes, int, float, complex, type(None))
_DEEP, _MOST = 5, 100
"""Levels that are looked at, and things in each container: files stand close to the data set that reads them."""


def can_use_workers(loader: DataLoader[Any]) -> bool:
    """Not an IterableDataset (each worker would yield all of it), no device tensors, no open file (forked
    processes share its place, and read each other's bytes), and picklable unless forked."""
    from torch.utils.data import IterableDataset

    if isinstance(loader.dataset, IterableDataset):
        return False
    if lies_on_device(loader.dataset) or (loader.num_workers == 0 and holds_open_file(loader.dataset)):
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


def holds_open_file(dataset: Any) -> bool:
    """Whether it, or what it is made of, holds a file, an archive or a data base that was opened in this process."""
    seen: set[int] = set()
    found = [dataset]
    for _ in range(_DEEP):
        held: list[Any] = []
        for thing in found:
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            if isinstance(thing, dict):
                held += islice(thing.values(), _MOST)
            elif isinstance(thing, list | tuple | set | frozenset):
                held += islice(thing, _MOST)
            elif _is_open(thing):
                return True
            elif not isinstance(thing, type | ModuleType):
                held += [*attributes_of(thing).values(), *(value for _, value in in_slots(thing))]
        found = [thing for thing in held if not isinstance(thing, _PLAIN)]
    return False


def _is_open(thing: Any) -> bool:
    if isinstance(thing, io.IOBase):
        return not (thing.closed or isinstance(thing, io.BytesIO | io.StringIO))
    if isinstance(thing, zipfile.ZipFile):
        return thing.fp is not None and not isinstance(thing.fp, io.BytesIO)
    if isinstance(thing, tarfile.TarFile):
        return not getattr(thing, "closed", False)
    return any(is_of(thing, module, *names) for module, names in _OF_LIBRARIES.items())


def lies_on_device(dataset: Any) -> bool:
    """Whether the data set holds tensors of a device, by themselves or in a tuple or list (as TensorDataset does)."""
    import torch

    own = attributes_of(dataset).values()  # a list is a data set too
    held = [part for value in own for part in (value if isinstance(value, tuple | list) else (value,))]
    return any(isinstance(part, torch.Tensor) and part.device.type != "cpu" for part in held)
