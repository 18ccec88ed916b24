"""Applying a function to every tensor of whatever a model takes or returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

__all__ = ["map_tensors"]


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
