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
        self._by_device: list[tuple[list[Tensor], list[Tensor]]] = []
        """Of each device: the large tensors' bytes, and the small ones'."""

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
            self._by_device = [
                (
                    [data for data in flat if data.device == device and data.numel() > SMALL_BYTES],
                    [data for data in flat if data.device == device and data.numel() <= SMALL_BYTES],
                )
                for device in dict.fromkeys(data.device for data in flat)
            ]
        sums: list[int] = []
        for large, small in self._by_device:
            told = [_sum(data) for data in large] + ([_sum(torch.cat(small), by_place=True)] if small else [])
            sums += torch.stack(told).tolist()  # one wait for each device
        return [places, sums]


def _as_it_lies(tensor: Tensor) -> Tensor:
    """The bytes of a tensor, without a copy where it fills its memory."""
    import torch

    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        tensor = tensor.permute(0, 2, 3, 1)
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _sum(data: Tensor, by_place: bool = False) -> Tensor:
    """Sum of bytes, read as whole numbers of eight bytes each (of one, at its ends), modulo 2 ** 64: torch adds
    narrower ones up in 67 times the time. ``by_place``: each number times an odd one of its own: places count."""
    import torch

    head = min(-data.storage_offset() % 8, data.numel())  # up to where a number of eight bytes may begin
    tail = data.numel() - (data.numel() - head) % 8
    numbers = data[head:tail].view(torch.int64)
    if by_place:
        numbers = numbers * torch.arange(1, 2 * len(numbers), 2, device=data.device)
    return data[:head].sum(dtype=torch.int64) + numbers.sum() + data[tail:].sum(dtype=torch.int64)


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
