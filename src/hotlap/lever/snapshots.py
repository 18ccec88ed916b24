"""Copies of a state, each in the memory that an earlier copy has left: fresh memory costs several times the copying."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["Snapshots", "copies_made", "tensors_in"]

_DEEP = 8
"""Containers in containers that tensors are looked for in."""
_SPARES = 4
"""Kept copies: a checkpoint is often several files (model, optimizer, schedule, random state)."""


class Snapshots:
    """Makes copies that share nothing with the original; keeps some that were given back, for the next to be made in.

    ``most_bytes``: what is kept, all together; one copy larger than that is kept alone.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._spares: list[list[Tensor]] = []
        """The one given back last at the end."""

    def take(self, state: Any) -> Any:
        """A deep copy. Raises what :func:`copy.deepcopy` raises for what cannot be copied."""
        import torch

        memo: dict[int, Any] = {}
        now, spares = _of_their_own(state), self._spares
        fits = next((s for s in reversed(spares) if len(now) == len(s) and all(map(_alike, now, s))), None)
        if fits is not None:
            self._spares = [spare for spare in spares if spare is not fits]
            with torch.no_grad():
                for tensor, place in zip(now, fits, strict=True):
                    memo[id(tensor)] = place.copy_(tensor)
        return copy.deepcopy(state, memo)

    def give_back(self, taken: Any) -> None:
        """Nobody needs this copy any more."""
        own = _of_their_own(taken)
        if not own:
            return
        spares = [*self._spares, own][-_SPARES:]
        while len(spares) > 1 and sum(t.nbytes for spare in spares for t in spare) > self._most_bytes:
            spares = spares[1:]
        self._spares = spares


def copies_made(taken: Any) -> list[torch.cuda.Event]:
    """Events, one per CUDA device, that happen once a copy just taken is complete. The copies are made on the script's
    current streams, and a thread that reads them has streams of its own, which wait for nothing."""
    import torch

    devices = {t.device for t in tensors_in(taken) if t.is_cuda}
    return [torch.cuda.current_stream(device).record_event() for device in devices]


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
