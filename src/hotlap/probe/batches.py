"""How many samples a batch holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["batch_samples"]

_DEPTH = 4


def batch_samples(batch: Any, depth: int = _DEPTH) -> int:
    """First dimension of the first tensor in a batch (tuples, lists, mappings); 0 when there is none."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        try:
            return int(shape[0]) if len(shape) else 0
        except TypeError:
            return 0
    if depth == 0 or isinstance(batch, str | bytes):
        return 0
    if isinstance(batch, Mapping):
        values: Any = batch.values()
    elif isinstance(batch, tuple | list):
        values = batch[:8]
    else:
        return 0
    for value in values:
        found = batch_samples(value, depth - 1)
        if found:
            return found
    return 0
