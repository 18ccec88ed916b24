"""What a module is at this moment: its numbers, and everything that it and its parts hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.lever.nested_rows import Unfit

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["WeightsPrint", "holdings", "same_things"]


SMALL_BYTES = 1 << 16
"""Tensors up to this size are added up together: 400 of them one by one take five times as long."""


class WeightsPrint:
    """Takes prints of one network's weights, again and again: where each parameter (and buffer) lies, and sums of bits.

    Torch's own count of changes does not see those through ``.data`` or a numpy view (a moving average of weights), and
    sees changes where DistributedDataParallel writes the same numbers again.
    """

    def __init__(self, buffers: bool = True) -> None:
        self._buffers = buffers
        self._places: list[int] = []
        self._large: list[Tensor] = []
        self._small: list[list[Tensor]] = []

    def take(self, module: nn.Module) -> list[Any]:
        """The print of now; equal ones are of equal weights at the same places."""
        import torch

        tensors = [*module.parameters(), *(module.buffers() if self._buffers else ())]
        if any(type(t) not in (torch.nn.Parameter, torch.Tensor) for t in tensors):
            raise Unfit("its parameters are no plain tensors (sharded, quantised)")
        places = [t.data_ptr() for t in tensors]
        if places != self._places:
            flat = [_as_it_lies(t.detach()) for t in tensors]
            seen = all(data.data_ptr() == place for data, place in zip(flat, places, strict=True))
            self._places = places if seen else []  # a copy shows what was there when it was made
            self._large = [data for data in flat if data.numel() > SMALL_BYTES]
            small = [data for data in flat if data.numel() <= SMALL_BYTES]
            devices = dict.fromkeys(data.device for data in small)
            self._small = [[data for data in small if data.device == device] for device in devices]
        sums = [_sum(data) for data in self._large]
        sums += [_sum(torch.cat(parts), by_place=True) for parts in self._small]
        return [places, torch.stack([s.cpu() for s in sums]).tolist() if sums else []]


def _as_it_lies(tensor: Tensor) -> Tensor:
    """The bytes of a tensor, without a copy where it fills its memory."""
    import torch

    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        tensor = tensor.permute(0, 2, 3, 1)
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _sum(data: Tensor, by_place: bool = False) -> Tensor:
    """Sum of bytes, read as whole numbers of eight bytes each (of one, at the end), modulo 2 ** 64: torch adds narrower
    ones up in 67 times the time. ``by_place``: each number times an odd one of its own, so that places count."""
    import torch

    words = data.numel() // 8 * 8 if data.storage_offset() % 8 == 0 else 0
    numbers = data[:words].view(torch.int64)
    if by_place:
        numbers = numbers * torch.arange(1, 2 * len(numbers), 2, device=data.device)
    total = data[words:].sum(dtype=torch.int64)
    return total + numbers.sum() if words else total


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
