"""Whether batches in a row lie in memory of their own: one may then be made while another is used."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from hotlap.lever.nested import DEEPEST

__all__ = ["BatchMemory"]

_NOTHING_IN_IT = (str, bytes, int, float, complex, type(None))


class BatchMemory:
    """Looks at batches in the order in which they come, and holds them meanwhile: what is alive lies where nothing else
    does, unless it is the same."""

    def __init__(self, enough: int) -> None:
        self._left = enough
        self._places: dict[int, Any] = {}
        """By its address: each object that can be written over."""

    def apart(self, batch: Any) -> bool | None:
        """True with the last of ``enough`` batches that have no memory in common (with the first, where nothing in it
        can be written over); False where this one has some in common with an earlier one; None before that is known."""
        places: dict[int, Any] = {}
        try:
            _gather(batch, places)
        except Exception:  # an object of somebody's that cannot be looked into
            return False
        if not self._places.keys().isdisjoint(places):
            return False
        self._places |= places
        self._left -= 1
        return True if self._left <= 0 or not places else None


def _gather(value: Any, places: dict[int, Any], depth: int = 0) -> None:
    """Tensors, arrays, lists and mappings in ``value``, also in attributes of other objects."""
    import torch

    if isinstance(value, _NOTHING_IN_IT) or depth > DEEPEST:
        return
    numpy = sys.modules.get("numpy")
    parts: Any = ()
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            storage = value.untyped_storage()
            places[storage.data_ptr()] = storage
        else:
            parts = (value.values(),)
    elif numpy is not None and isinstance(value, numpy.ndarray):
        while isinstance(value.base, numpy.ndarray):
            value = value.base
        places[value.ctypes.data] = value
    elif isinstance(value, tuple):
        parts = value
    elif isinstance(value, Mapping):
        places[id(value)] = value
        parts = value.values()
    elif isinstance(value, list | set | bytearray):
        places[id(value)] = value
        parts = () if isinstance(value, bytearray) else value
    else:
        parts = getattr(value, "__dict__", {}).values()
    for part in parts:
        _gather(part, places, depth + 1)
    places.pop(0, None)  # the address of what is empty
