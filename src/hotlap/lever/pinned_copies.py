"""``Tensor.to`` and ``Tensor.cuda`` that do not wait when they copy pinned memory to a device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["without_waiting"]


def _names_device(args: tuple[Any, ...], kwargs: dict[str, Any], method: str) -> bool:
    """Whether the call says a device other than the CPU, and nothing else: no type, no wish of its own to wait."""
    import torch

    if len(args) + len(kwargs) != 1 or not kwargs.keys() <= {"device"}:
        return method == "cuda" and not args and not kwargs
    wanted = args[0] if args else kwargs["device"]
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        return True
    return isinstance(wanted, str | torch.device) and torch.device(wanted).type != "cpu"


def without_waiting(real: Callable[..., Any], method: str) -> Callable[..., Any]:
    """``real`` (``to`` or ``cuda``) with ``non_blocking=True`` where a pinned tensor goes to a device.

    What a compiler traces is left alone.
    """
    import torch

    is_compiling = torch.compiler.is_compiling

    @functools.wraps(real)
    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or self.device.type != "cpu" or not _names_device(args, kwargs, method):
            return real(self, *args, **kwargs)
        if not self.is_pinned():
            return real(self, *args, **kwargs)
        return real(self, *args, **kwargs, non_blocking=True)

    return copy
