"""What a class has under a name: the function behind it, or a value that its objects read."""

from __future__ import annotations

import functools
from types import BuiltinFunctionType, DynamicClassAttribute, MethodType
from typing import Any

from hotlap.lever.users_code import is_standard

__all__ = ["function_of", "is_read_as_it_is"]

_AS_IT_IS = (functools.partial, MethodType, BuiltinFunctionType, type)


def function_of(found: Any) -> Any:
    """The function behind a property, a class method and their like; what is found where there is none."""
    if isinstance(found, property | DynamicClassAttribute):
        return found.fget or found
    if isinstance(found, classmethod | staticmethod):
        return found.__func__
    if isinstance(found, functools.cached_property | functools.partialmethod):
        return found.func
    return found


def is_read_as_it_is(found: Any) -> bool:
    """Whether what is no function is a value, an object that is called or one that answers for its attribute: none of
    Python's own ways to reach a slot of an object."""
    kind = type(found)
    is_value = not callable(found) and not hasattr(kind, "__get__")
    return is_value or isinstance(found, _AS_IT_IS) or not is_standard(kind.__module__)
