"""Weights that a lever has laid out channels last, where safetensors saves them: it takes the usual layout alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotlap.lever.contract import Target

__all__ = ["save_in_the_usual_layout"]


def save_in_the_usual_layout(target: Target) -> None:
    """Let safetensors write tensors that are channels last as if they were not: the same numbers in the same file."""

    def ready(module: ModuleType) -> None:
        for name in ("save_file", "save"):
            target.replace(module, name, _dense(getattr(module, name)))
            target.changed(-1)

    target.on_import("safetensors.torch", ready)


def _dense(save: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(save)
    def saved(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(tensors, dict):
            tensors = {name: _usual(tensor) for name, tensor in tensors.items()}
        return save(tensors, *args, **kwargs)

    return saved


def _usual(tensor: Any) -> Any:
    import torch

    if not isinstance(tensor, torch.Tensor) or tensor.dim() != 4 or tensor.is_contiguous():
        return tensor
    return tensor.contiguous() if tensor.is_contiguous(memory_format=torch.channels_last) else tensor
