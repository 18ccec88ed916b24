"""What a checkpointed function does beside its result: done twice with checkpointing, and once without."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

__all__ = ["told_by_state"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes, slice, range, type(...))
_KNOWN = ("torch", "math", "builtins", "functools", "operator")
"""Modules whose functions keep nothing between calls but what they are given."""


def told_by_state(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Why calling ``function`` once instead of twice may be seen later, or None where it cannot.

    Seen are the modules that the function is, is bound to, holds in its closure or finds in its globals. One in
    training mode that holds numbers beside its parameters (running statistics, a codebook, the vectors of a spectral
    norm) may change them in every forward. Masks of bool cannot gather anything.
    """
    modules: dict[int, nn.Module] = {}
    hidden = _Seen(modules).look((function, args, kwargs))
    if hidden is not None:
        return f"what a checkpointed function changes cannot be seen (it uses {hidden})"
    for module in modules.values():
        for part in module.modules():
            if part.training and any(_gathers(value) for value in _held(part)):
                return f"a checkpointed {type(part).__name__} keeps numbers that its forward may change"
    return None


def _held(module: nn.Module) -> Iterator[Any]:
    yield from module._buffers.values()
    yield from vars(module).values()


def _gathers(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.dtype is not torch.bool


class _Seen:
    """Collects the modules that a value leads to."""

    def __init__(self, modules: dict[int, nn.Module]) -> None:
        self._modules = modules
        self._ids: set[int] = set()

    def look(self, value: Any) -> str | None:
        """What is no module, no number and no function of torch, in words; None if there is no such thing."""
        import torch

        if isinstance(value, (*_PLAIN, torch.Tensor, torch.dtype, torch.device, torch.Size)) or id(value) in self._ids:
            return None
        self._ids.add(id(value))
        if isinstance(value, torch.nn.Module):
            self._modules[id(value)] = value
            return None
        if isinstance(value, tuple | list | set | frozenset):
            return self._first(value)
        if isinstance(value, dict):
            return self._first(value.values())
        if isinstance(value, functools.partial):
            bound = bool(value.args) and _is_method(value.func, value.args[0])
            return self._first((None if bound else value.func, value.args, value.keywords))
        if isinstance(value, MethodType):
            owner = value.__self__
            return self.look(owner) if isinstance(owner, torch.nn.Module) else self._first((owner, value.__func__))
        if isinstance(value, torch.Generator):
            return "a generator of random numbers"
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if name is None and isinstance(value, BuiltinFunctionType):  # torch.sin
            name = getattr(value.__self__, "__module__", None) or getattr(value.__self__, "__name__", None)
        if isinstance(name, str) and name.partition(".")[0] in _KNOWN:
            return None
        if isinstance(value, FunctionType):
            return self._function(value)
        return getattr(value, "__qualname__", None) or f"a {type(value).__name__}"

    def _first(self, values: Any) -> str | None:
        return next((found for value in values if (found := self.look(value)) is not None), None)

    def _function(self, function: FunctionType) -> str | None:
        try:
            cells = [cell.cell_contents for cell in function.__closure__ or ()]
        except ValueError:  # a name that is not bound yet
            return function.__qualname__
        used = [function.__globals__[n] for n in _names(function.__code__) if n in function.__globals__]
        return self._first([*cells, *used, function.__defaults__, function.__kwdefaults__])


def _is_method(function: Any, first: Any) -> bool:
    """Whether ``function`` is a method of the module ``first``, or what one of its methods wraps (transformers:
    ``partial(forward, layer)``): as good as the module's own bound one."""
    import torch

    if not (isinstance(first, torch.nn.Module) and isinstance(function, FunctionType)):
        return False
    for owner in type(first).__mro__:
        method = vars(owner).get(function.__name__)
        while method is not None and method is not function:
            method = getattr(method, "__wrapped__", None)
        if method is not None:
            return True
    return False


def _names(code: CodeType) -> Iterator[str]:
    """Names that the function and those in it look up, attributes among them."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
