"""Modules that make the loss of what a model gave (margin heads): they are told by their first call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from hotlap.lever.nested import map_tensors

if TYPE_CHECKING:
    import torch
    from torch import nn

__all__ = ["LossHeads", "fed_by_a_model"]


class LossHeads:
    """The modules that were found to be loss heads."""

    def __init__(self) -> None:
        self._heads: WeakSet[nn.Module] = WeakSet()

    def __contains__(self, module: nn.Module) -> bool:
        return module in self._heads

    def judge(self, module: nn.Module, out: Any) -> Any:
        """Remember the module if all of ``out`` that carries a gradient is a scalar. Gives ``out``."""
        sizes = [t.numel() for t in _tensors(out) if t.requires_grad]
        if sizes and max(sizes) == 1:
            self._heads.add(module)
        return out


def fed_by_a_model(given: Any) -> bool:
    """Whether gradients will flow on through one of the inputs."""
    return any(t.grad_fn is not None for t in _tensors(given))


def _tensors(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor)
        return tensor

    map_tensors(value, keep)
    return found
