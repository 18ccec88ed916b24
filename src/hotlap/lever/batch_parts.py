"""The tensors of a batch, and the batch put together anew around others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

__all__ = ["rebuilt", "tensors_in"]

DEEPEST = 4
"""Levels of lists and mappings that are looked into."""


def tensors_in(batch: Any, depth: int = 0) -> Iterator[Any]:
    """Tensors (of no subclass) in lists, tuples and mappings, ``BatchEncoding`` and the like among them."""
    import torch

    if type(batch) is torch.Tensor:
        yield batch
    elif depth < DEEPEST:
        parts = batch.values() if isinstance(batch, MutableMapping) else batch if _is_list(batch) else ()
        for part in parts:
            yield from tensors_in(part, depth + 1)


def rebuilt(batch: Any, function: Callable[[Any], Any], depth: int = 0) -> Any:
    """``batch`` with ``function`` applied to :func:`tensors_in` it, in lists, tuples and mappings of its own.

    What is changed in the one is not changed in the other, but for the tensors that ``function`` hands on.
    """
    import torch

    if type(batch) is torch.Tensor:
        return function(batch)
    if depth < DEEPEST and isinstance(batch, MutableMapping):
        out = copy.copy(batch)
        for key, part in batch.items():
            out[key] = rebuilt(part, function, depth + 1)
        return out
    if depth < DEEPEST and _is_list(batch):
        parts = [rebuilt(part, function, depth + 1) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch


def _is_list(value: Any) -> bool:
    """Lists and tuples, named ones too; no other class of somebody's."""
    return type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields"))
