"""Copies of a state, each in the memory that an earlier copy has left: fresh memory costs several times the copying."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Snapshots", "tensors_in"]

_DEEP = 8
"""Containers in containers that tensors are looked for in."""


class Snapshots:
    """Makes copies that share nothing with the original; keeps one that was given back, for the next to be made in."""

    def __init__(self) -> None:
        self._spare: list[Tensor] | None = None

    def take(self, state: Any) -> Any:
        """A deep copy. Raises what :func:`copy.deepcopy` raises for what cannot be copied."""
        import torch

        memo: dict[int, Any] = {}
        now, spare = _of_their_own(state), self._spare
        if spare is not None and len(now) == len(spare) and all(map(_alike, now, spare)):
            self._spare = None
            with torch.no_grad():
                for tensor, place in zip(now, spare, strict=True):
                    memo[id(tensor)] = place.copy_(tensor)
        return copy.deepcopy(state, memo)

    def give_back(self, taken: Any) -> None:
        """Nobody needs this copy any more."""
        self._spare = _of_their_own(taken)


def tensors_in(value: Any, depth: int = 0) -> Iterator[Tensor]:
    """The tensors in dicts, lists, tuples and modules."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict) and depth < _DEEP:
        for v in value.values():
            yield from tensors_in(v, depth + 1)
    elif isinstance(value, list | tuple) and depth < _DEEP:
        for v in value:
            yield from tensors_in(v, depth + 1)
    elif isinstance(value, torch.nn.Module):
        yield from value.parameters()
        yield from value.buffers()


def _of_their_own(state: Any) -> list[Tensor]:
    """Plain tensors that fill a storage which nothing else in ``state`` has a part in: each can be copied alone."""
    found = {id(t): t for t in tensors_in(state)}.values()
    users: dict[int, int] = {}
    for tensor in found:
        where = _storage(tensor)
        users[where] = users.get(where, 0) + 1
    return [t for t in found if users[_storage(t)] == 1 and _plain(t)]


def _storage(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):  # sparse tensors and the like have none: never unique
        return 0


def _plain(tensor: Tensor) -> bool:
    import torch

    return (
        type(tensor) is torch.Tensor
        and tensor.layout is torch.strided
        and not (tensor.requires_grad or tensor.is_conj() or tensor.is_neg() or tensor.is_quantized)
        and not tensor.is_inference()
        and not tensor.__dict__
        and tensor.nbytes == tensor.untyped_storage().nbytes() > 0
    )


def _alike(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and a.device == b.device
