"""Whether a model's convolution weights may be laid out anew in memory."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

__all__ = ["are_shared", "lay_out_states", "why_weights_stay"]


def why_weights_stay(module: nn.Module) -> str | None:
    """Why its weights have to stay where and as they are; None where they may move."""
    if _optimizer_forbids(module):
        return "its optimizer has momentum already (a training that was resumed), or is fused on a CPU"
    if are_shared(module):
        return "its weights lie in memory that has other users: several processes, or one buffer for all of them"
    return None


def are_shared(module: nn.Module) -> bool:
    """Whether somebody else looks at the memory of its convolution weights."""
    return any(_others_look_there(t) for t in (*module.parameters(), *module.buffers()) if t.dim() == 4)


def lay_out_states(optimizer: Optimizer, parameters: list[nn.Parameter]) -> None:
    """Give its states the layout that these parameters were given: those that were loaded lie as they were saved, and
    what is fused goes through weights and states side by side, whatever their layouts."""
    import torch

    for parameter in parameters:
        state = optimizer.state.get(parameter, {}) if parameter.dim() == 4 else {}
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                state[name] = value.contiguous(memory_format=torch.channels_last)


def _others_look_there(tensor: Any) -> bool:
    """Whether it is shared with other processes, or a part of a larger tensor."""
    is_shared = tensor.device.type == "cpu" and tensor.is_shared()  # on an accelerator torch says so of any
    return bool(is_shared or tensor.untyped_storage().nbytes() != tensor.numel() * tensor.element_size())


def _optimizer_forbids(module: nn.Module) -> bool:
    """Whether an optimizer of these parameters has state already, or is fused on a CPU."""
    from torch.optim import Optimizer

    own = {id(p): p for p in module.parameters()}
    for found in gc.get_objects():
        if not issubclass(type(found), Optimizer):  # isinstance would wake lazy objects by asking their __class__
            continue
        for group in found.param_groups:
            held = [own[id(p)] for p in group["params"] if id(p) in own]
            fused_on_cpu = group.get("fused") and any(p.device.type == "cpu" for p in held)
            if held and (fused_on_cpu or any(found.state.get(p) for p in held)):
                return True
    return False
