"""States of which a deep copy makes the same file: values in dicts, lists and the like, with nothing of a class's own.

Anything else may be copied into something else (``copy.deepcopy`` drops what a script has hung onto a parameter), or be
copied without a word and then be refused by pickle (a function).
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import OrderedDict, defaultdict
from pathlib import PosixPath, PurePosixPath
from typing import Any

__all__ = ["is_plain"]

_VALUES = frozenset({type(None), bool, int, float, complex, str, bytes, bytearray, PosixPath, PurePosixPath})
_FACTORIES = (None, bool, int, float, str, dict, list, set, tuple)
"""What a ``defaultdict`` may make its values with: pickle finds them by name."""


def is_plain(state: Any) -> bool:
    """Whether ``state`` consists of tensors, parameters and arrays without attributes of their own, numbers, text and
    the like, in dicts, lists, tuples, sets and namespaces: none of them, nor of what is in them, of a derived class."""
    import torch

    values = _VALUES | {torch.dtype, torch.device, torch.Size}
    tensors = (torch.Tensor, torch.nn.Parameter)
    seen: set[int] = set()
    waiting = [state]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind in values or id(value) in seen:
            continue
        seen.add(id(value))
        if kind is dict or kind is OrderedDict or (kind is defaultdict and value.default_factory in _FACTORIES):
            waiting += value.keys()
            waiting += value.values()
            waiting += getattr(value, "__dict__", {}).values()  # the versions of a state_dict, in its _metadata
        elif kind is list or kind is tuple or kind is set or kind is frozenset:
            waiting += value
        elif kind is Namespace:
            waiting += vars(value).values()
        elif not (vars(value) == {} if kind in tensors else _is_of_numpy(value)):
            return False
    return True


def _is_of_numpy(value: Any) -> bool:
    """Whether it is an array of numbers or text, or one such number."""
    numpy = sys.modules.get("numpy")
    kind = type(value)
    if numpy is None or not (kind is numpy.ndarray or (issubclass(kind, numpy.generic) and kind.__module__ == "numpy")):
        return False
    return not value.dtype.hasobject
