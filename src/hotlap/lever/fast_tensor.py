"""``torch.tensor`` for lists of arrays and nested lists of numbers: one copy in place of one conversion per number.

What gives the same bits is known by type alone; everything else goes to torch's own function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["fast_tensor"]

_LEAST = 2
"""A list shorter than this is converted by torch."""
_LEAST_NUMBERS = 64
"""A flat list of fewer numbers is converted by torch in no more time."""
_DEPTH = 4
_KINDS = {frozenset((float,)): "float64", frozenset((int,)): "int64", frozenset((bool,)): "bool"}


def _leaf_kind(data: Any, depth: int) -> str | None:
    """``float64``, ``int64`` or ``bool`` when all numbers of the nested lists are of that one Python type."""
    first = data[0] if data else None
    if type(first) is not list and type(first) is not tuple:
        return _KINDS.get(frozenset(map(type, data)))
    if depth == 0:
        return None
    kinds = {_leaf_kind(part, depth - 1) if type(part) is list or type(part) is tuple else None for part in data}
    return kinds.pop() if len(kinds) == 1 else None


def _of_lists(torch: Any, numpy: Any, data: Any, dtype: Any) -> Any:
    nested = type(data[0]) is list or type(data[0]) is tuple
    kind = _leaf_kind(data, _DEPTH) if nested or len(data) >= _LEAST_NUMBERS else None
    if kind is None:
        return None
    if kind == "float64":
        wanted = dtype or torch.get_default_dtype()
        allowed = wanted in (torch.float32, torch.float64)
    else:
        wanted = torch.int64 if kind == "int64" else torch.bool
        allowed = dtype is None or dtype is wanted
    if not allowed:
        return None
    try:
        array = numpy.array(data)
    except (ValueError, OverflowError):  # lists of different lengths: torch says so in its own words
        return None
    return torch.from_numpy(array).to(wanted) if array.dtype == kind else None


def _of_arrays(torch: Any, numpy: Any, data: Any, dtype: Any, natural: dict[Any, Any], real: Any) -> Any:
    first = data[0]
    kind, shape = first.dtype, first.shape
    if not shape or any(type(a) is not numpy.ndarray or a.dtype != kind or a.shape != shape for a in data):
        return None
    if not first.size or not kind.isnative or kind.kind not in "fiub":
        return None
    if kind not in natural:
        natural[kind] = real([numpy.zeros(1, kind)]).dtype  # what torch itself makes of it
    own = torch.from_numpy(numpy.stack(data))
    if own.dtype is not natural[kind]:
        return None
    floats = (torch.float32, torch.float64)
    if dtype is None or dtype is own.dtype:
        return own
    return own.to(dtype) if dtype in floats and own.dtype in floats else None


def fast_tensor(real: Callable[..., Any], used: Callable[[], None]) -> Callable[..., Any]:
    """``real`` (``torch.tensor``) with the short ways before it; ``used`` is called when one was taken."""
    natural: dict[Any, Any] = {}

    def tensor(data: Any, *args: Any, **kwargs: Any) -> Any:
        numpy = sys.modules.get("numpy")
        long = (type(data) is list or type(data) is tuple) and len(data) >= _LEAST
        if numpy is None or not long or args or not kwargs.keys() <= {"dtype"}:
            return real(data, *args, **kwargs)
        import torch

        dtype = kwargs.get("dtype")
        if torch.get_default_device().type != "cpu":
            return real(data, **kwargs)
        if type(data[0]) is numpy.ndarray:
            made = _of_arrays(torch, numpy, data, dtype, natural, real)
        else:
            made = _of_lists(torch, numpy, data, dtype)
        if made is None:
            return real(data, **kwargs)
        used()
        return made

    return tensor
