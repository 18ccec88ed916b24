"""Going through the tensors of whatever a model takes or returns, and of batches.

A model's arguments are the script's own objects, and :func:`map_tensors` keeps them; a batch is given out in new lists
and mappings by :func:`rebuilt`, so that what becomes of the one is not seen in the other.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

__all__ = ["map_tensors", "rebuilt", "tensors_in"]

DEEPEST = 4
"""Levels of lists and mappings that are looked into."""


def map_tensors(value: Any, function: Callable[[Any], Any]) -> Any:
    """``value`` with ``function`` applied to its tensors.

    Tuples, named tuples and lists are rebuilt in their own type; dict subclasses (``ModelOutput``) and dataclasses are
    changed in place, since their constructors may want more than their fields. Other objects are left alone.
    """
    import torch

    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, tuple):
        parts = [map_tensors(v, function) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if type(value) is list:
        return [map_tensors(v, function) for v in value]
    if type(value) is dict:
        return {k: map_tensors(v, function) for k, v in value.items()}
    if isinstance(value, dict):
        for key in list(value):
            value[key] = map_tensors(value[key], function)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            object.__setattr__(value, field.name, map_tensors(getattr(value, field.name), function))
    return value


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
