"""Whether an optimizer holds a module's parameters, asked of the garbage collector: a script may keep it anywhere."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

__all__ = ["is_held"]


def is_held(module: nn.Module) -> bool:
    """Whether an optimizer that exists now holds a parameter of the module."""
    from torch.optim import Optimizer

    own = {id(p) for p in module.parameters()}
    for found in gc.get_objects():
        if not issubclass(type(found), Optimizer):  # isinstance would wake lazy objects by asking their __class__
            continue
        if any(id(p) in own for group in found.param_groups for p in group["params"]):
            return True
    return False
