"""Whether autograd records a graph in a call of a network of whose parameters none is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hotlap.lever.nested import DEEPEST

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Graph"]


class Graph:
    """Made before the call. Asks nothing of what happens inside it."""

    def __init__(self, module: nn.Module) -> None:
        hooked = any(part._forward_hooks or part._forward_pre_hooks for part in module.modules() if part is not module)
        self._before = _nodes() if hooked else None

    def was_recorded(self, output: Any) -> bool:
        """Whether what the call gave asks for gradients; or, where somebody has hooked into a part of the network, and
        may keep something for himself, whether any graph was made at all."""
        return _asks(output) or (self._before is not None and _nodes() != self._before + 1)


def _nodes() -> int:
    """How many nodes of graphs this thread has made, one for this question among them."""
    import torch

    node = (torch.zeros((), device="cpu", requires_grad=True) * 1).grad_fn
    number = getattr(node, "_sequence_nr", None)
    return int(number()) if number is not None else 0


def _asks(value: Any, depth: int = 0) -> bool:
    """Whether a tensor in it requires gradients, also one in an attribute of an object."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.requires_grad
    if depth > DEEPEST:
        return False
    parts: Any = getattr(value, "__dict__", {}).values()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, list | tuple | set):
        parts = value
    return any(_asks(part, depth + 1) for part in parts)
