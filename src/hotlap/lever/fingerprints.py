"""What a module is at this moment: its numbers, and everything that it and its parts hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.lever.nested_rows import Unfit

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["holdings", "same_things", "weights_print"]


def weights_print(module: nn.Module, buffers: bool = True) -> list[Any]:
    """Where each parameter (and buffer) lies, and the sum of its bits.

    Torch's own count of changes does not see those through ``.data`` or a numpy view (a moving average of weights), and
    sees changes where DistributedDataParallel writes the same numbers again.
    """
    import torch

    tensors = [*module.parameters(), *(module.buffers() if buffers else ())]
    if any(type(t) not in (torch.nn.Parameter, torch.Tensor) for t in tensors):
        raise Unfit("its parameters are no plain tensors (sharded, quantised)")
    sums = [_bits(t.detach()) for t in tensors]
    told = torch.stack(sums).tolist() if sums else []
    return [(t.data_ptr(), bits) for t, bits in zip(tensors, told, strict=True)]


def _bits(tensor: Tensor) -> Tensor:
    """Sum of a tensor's bits as whole numbers, modulo 2 ** 64."""
    import torch

    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    if tensor.is_contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else False:
        tensor = tensor.permute(0, 2, 3, 1)  # as it lies: no copy
    flat = tensor.contiguous().reshape(-1)
    return flat.view(kinds[flat.element_size()]).sum(dtype=torch.int64)


def holdings(module: nn.Module) -> list[Any]:
    """Every attribute of the module and its parts, and what plain containers among them hold."""
    things: list[Any] = []
    for part in module.modules():
        for value in vars(part).values():
            things.append(value)
            if isinstance(value, dict):
                things += value.values()
            elif isinstance(value, list | set):
                things += value
    return things


def same_things(before: list[Any], after: list[Any]) -> bool:
    """Whether the very same objects are held."""
    return len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True))
