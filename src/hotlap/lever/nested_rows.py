"""What a network takes and gives, taken apart into its tensors: a row of each tensor is one sample's."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Unfit", "put_together", "row_keys", "some_rows", "taken_apart"]

_PLAIN = (type(None), bool, int, float, str)


class Unfit(Exception):
    """Why a network's outputs cannot be kept, in words for the user."""


def taken_apart(value: Any, tensors: list[Tensor]) -> Any:
    """The form of ``value``, comparable and printable, with a number for each tensor that went to ``tensors``."""
    import torch

    kind = type(value)
    if kind is torch.Tensor:
        if value.layout is not torch.strided or value.is_complex() or value.is_quantized:
            raise Unfit("one of its tensors is no plain one")
        tensors.append(value)
        return "tensor", len(tensors) - 1
    if kind in (tuple, list):
        return kind.__name__, tuple(taken_apart(v, tensors) for v in value)
    if kind is dict and all(type(k) in _PLAIN for k in value):
        return "dict", tuple((k, taken_apart(v, tensors)) for k, v in value.items())
    if kind in _PLAIN:
        return kind.__name__, value
    raise Unfit(f"it takes or gives a {kind.__name__}")


def put_together(form: Any, tensors: list[Tensor]) -> Any:
    """The value of that form with these tensors in it."""
    kind, held = form
    if kind == "tensor":
        return tensors[held]
    if kind in ("tuple", "list"):
        parts = [put_together(part, tensors) for part in held]
        return tuple(parts) if kind == "tuple" else parts
    if kind == "dict":
        return {key: put_together(part, tensors) for key, part in held}
    return held


def some_rows(given: Any, rows: list[int]) -> Any:
    """What a network is given, with these samples alone: copies, which lie in memory as the whole does."""
    import torch

    tensors: list[Tensor] = []
    form = taken_apart(given, tensors)
    count = _rows(tensors)

    def part(tensor: Tensor) -> Tensor:
        if tensor.dim() == 0 or tensor.shape[0] != count:
            return tensor
        found = tensor.index_select(0, torch.tensor(rows, device=tensor.device))
        is_last = tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
        return found.contiguous(memory_format=torch.channels_last) if is_last and not tensor.is_contiguous() else found

    return put_together(form, [part(tensor) for tensor in tensors])


def _rows(tensors: list[Tensor]) -> int:
    return next((t.shape[0] for t in tensors if t.dim() > 0), 0)


def row_keys(given: Any, context: Any) -> list[bytes]:
    """One key per sample of what a network is given: a cryptographic hash of that sample's bytes and of all the rest.

    ``context``: whatever else decides the output. Raises :class:`Unfit` where samples are not rows of a tensor.
    """
    tensors: list[Tensor] = []
    form = taken_apart(given, tensors)
    rows = _rows(tensors)
    if rows == 0:
        raise Unfit("it is called without a batch")
    whole = hashlib.blake2b(repr((form, context)).encode(), digest_size=16)
    parts = []
    for tensor in tensors:
        by_row = tensor.dim() > 0 and tensor.shape[0] == rows
        facts = (tensor.dtype, tensor.device, tensor.shape[1:], tensor.stride()[1:], by_row)
        whole.update(repr(facts).encode())
        if tensor.numel() == 0:
            continue
        data = _bytes(tensor, rows if by_row else 1)
        if by_row:
            parts.append(data)
        else:
            whole.update(data[0])
    keys = []
    for row in range(rows):
        one = whole.copy()
        for data in parts:
            one.update(data[row])
        keys.append(one.digest())
    return keys


def _bytes(tensor: Tensor, rows: int) -> Any:
    """An array of bytes, one line per row."""
    import torch

    plain = tensor.detach().contiguous().reshape(rows, -1).cpu()
    return plain.view(torch.uint8).numpy()
