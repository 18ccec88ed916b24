"""Whether zeros in a gradient would be missed, where it is dropped instead."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

__all__ = ["is_seen_elsewhere"]


def is_seen_elsewhere(parameter: nn.Parameter) -> bool:
    """Whether the script holds its gradient or sees it as a part of a larger tensor. A sparse one counts too: zeros
    that are written in its place would be dense."""
    import torch

    grad: Any = parameter.grad
    if grad.layout is not torch.strided or grad._is_view():
        return True
    is_part = grad.untyped_storage().nbytes() != grad.numel() * grad.element_size()
    del grad
    return is_part or _holders(parameter) > _holders_of_none()


def _holders(parameter: nn.Parameter) -> int:
    return sys.getrefcount(parameter.grad)


@cache
def _holders_of_none() -> int:
    """What is counted of a gradient that nobody holds, which differs between versions of torch."""
    import torch

    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.zeros(1)
    return _holders(parameter)
