"""What a module is at this moment: its numbers, and everything that it and its parts hold."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hotlap.lever.nested_rows import Unfit

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["AttributesWatch", "WeightsPrint", "WeightsWatch", "attributes_of_torch", "holdings", "same_things"]


SMALL_BYTES = 1 << 16
"""Tensors up to this size are added up together: one by one, each would cost calls of its own."""


TURNS = 8
"""A glance reads one in so many of the weights' parts, where there are as many: all of the weights, read between
its student's forward and backward, also push what the backward needs out of the caches."""


class WeightsPrint:
    """Takes prints of the same weights, again and again: where each lies, and sums of bits.

    Torch's own count of changes does not see those through ``.data`` or a numpy view (a moving average of weights), and
    sees changes where DistributedDataParallel writes the same numbers again.
    """

    def __init__(self) -> None:
        self._places: list[int] = []
        self._parts: list[list[Tensor]] = []
        """The bytes of each large tensor, and those of all small ones of a device."""

    def take(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The print of now; equal ones are of equal weights at the same places. Raises Unfit for what is no plain
        tensor."""
        _check_plain(tensors)
        places = [t.data_ptr() for t in tensors]
        if places != self._places:
            flat = [_as_it_lies(t.detach()) for t in tensors]
            seen = all(data.data_ptr() == place for data, place in zip(flat, places, strict=True))
            self._places = places if seen else []  # a copy shows what was there when it was made
            self._parts = [[data] for data in flat if data.numel() > SMALL_BYTES]
            small = [data for data in flat if data.numel() <= SMALL_BYTES]
            self._parts += [
                [data for data in small if data.device == device] for device in dict.fromkeys(d.device for d in small)
            ]
        return [places, _sums(self._parts)]

    def glance(self, places: list[int], turn: int) -> tuple[slice, list[int]] | None:
        """Which of the sums of the last print were taken anew, and they; None where the weights lie elsewhere now."""
        if places != self._places or not self._parts:
            return None
        turns = min(TURNS, len(self._parts))
        some = slice(turn % turns, None, turns)
        return some, _sums(self._parts[some])


class WeightsWatch:
    """Whether a network's weights are still what they were at the first look.

    Whatever torch counts as a change (an optimizer, ``load_state_dict``) is looked into at once. What it does not count
    (through ``.data`` or a numpy view) shows at the next look where it is of all weights, as a moving average is, and
    after :data:`TURNS` looks where it is of one tensor.
    """

    def __init__(self) -> None:
        self._prints = WeightsPrint()
        self._first: list[Any] | None = None
        self._versions: list[int] = []
        self._looks = 0

    def changed(self, tensors: Sequence[Tensor]) -> bool:
        """Look at a network's parameters and buffers. Raises Unfit where they cannot be looked at."""
        self._looks += 1
        _check_plain(tensors)
        counted = not any(t.is_inference() for t in tensors)
        versions = [t._version for t in tensors] if counted else []
        if self._first is not None and counted and versions == self._versions:
            seen = self._prints.glance([t.data_ptr() for t in tensors], self._looks)
            if seen is not None:
                some, sums = seen
                return bool(self._first[1][some] != sums)
        now = self._prints.take(tensors)
        self._versions = versions
        self._first = self._first or now
        return now != self._first


def _check_plain(tensors: Sequence[Tensor]) -> None:
    import torch

    if any(type(t) not in (torch.nn.Parameter, torch.Tensor) for t in tensors):
        raise Unfit("its parameters are no plain tensors (sharded, quantised)")


def _sums(parts: list[list[Tensor]]) -> list[int]:
    """One sum for each part; one wait for each device."""
    import torch

    told = [_sum(part[0]) if part[0].numel() > SMALL_BYTES else _sum(torch.cat(part), by_place=True) for part in parts]
    sums = [0] * len(told)
    for device in dict.fromkeys(s.device for s in told):
        own = [number for number, s in enumerate(told) if s.device == device]
        for number, found in zip(own, torch.stack([told[number] for number in own]).tolist(), strict=True):
            sums[number] = found
    return sums


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


@functools.cache
def attributes_of_torch() -> frozenset[str]:
    """Names of what torch keeps in any module: hooks that come and go, and what else has a look of its own."""
    from torch.nn import Module

    return frozenset({*vars(Module()), "_compiled_call_impl"})


class AttributesWatch:
    """Whether a network's attributes, and what plain containers among them hold, are still what they were at first.

    Told by the places of the objects, which are held meanwhile: to compare each with each takes far longer.
    """

    def __init__(self) -> None:
        self._things: list[Any] = []
        self._places: list[int] = []
        self._containers: list[Any] | None = None

    def changed(self, attributes: list[Any]) -> bool:
        """Look at all parts of the network and the values of their own attributes, in the same order each time."""
        if self._containers is None:
            self._containers = [value for value in attributes if isinstance(value, dict | list | set)]
        things = attributes.copy()
        for container in self._containers:
            things += container.values() if isinstance(container, dict) else container
        places = list(map(id, things))
        if places != self._places:
            if self._things and not _equal_things(self._things, things):
                return True
            self._things, self._places = things, places
        return False


def _equal_things(before: list[Any], after: list[Any]) -> bool:
    """As :func:`same_things`, where another object may be the same number, or the same words."""

    def same(a: Any, b: Any) -> bool:
        return a is b or (type(a) is type(b) and isinstance(a, int | float | str) and bool(a == b))

    return len(before) == len(after) and all(map(same, before, after))


def same_things(before: list[Any], after: list[Any]) -> bool:
    """Whether the very same objects are held."""
    return len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True))
