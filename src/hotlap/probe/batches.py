"""How many samples a batch holds, and how many bytes one of them takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["batch_samples", "sample_bytes"]

_DEPTH = 4
_LOOKED_INTO = 64
"""Elements of a list whose bytes are added up; the rest are taken to be like them."""
_NUMBER = 8


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


def sample_bytes(batch: Any, samples: int) -> int | None:
    """Bytes of one of a batch's ``samples``, on the mean; None where something in it has a size of its own kind."""
    try:
        found = _bytes(batch, _DEPTH)
    except Exception:  # an object of the script's, or a tensor without storage
        return None
    return None if found is None or samples <= 0 else round(found / samples)


def _bytes(value: Any, depth: int) -> float | None:
    size = getattr(value, "nbytes", None)
    if size is not None:
        return float(size)
    if isinstance(value, str | bytes):
        return float(len(value))
    if value is None or isinstance(value, int | float):
        return float(_NUMBER)
    if depth == 0 or not isinstance(value, Mapping | tuple | list):
        return None
    values = list(value.values()) if isinstance(value, Mapping) else value
    if not values:
        return 0.0
    sizes = [_bytes(one, depth - 1) for one in values[:_LOOKED_INTO]]
    known = [size for size in sizes if size is not None]
    return sum(known) * len(values) / len(sizes) if len(known) == len(sizes) else None
