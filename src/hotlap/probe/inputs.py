"""What the outermost modules are given in training: how many shapes, how much of it is padding, how much denormal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.denormals import share_of_denormals
from hotlap.records.rows import Setting

__all__ = ["Inputs", "paddings", "tensors_given"]

RUNS = 32
"""Stretches of each tensor in which denormals are looked for: a batch has them in some samples, at some ends."""
DENSE = 0.5
"""Part of the places up to a sample's last content that have content, where what follows is padding. Prior: a half.
Zeros behind a bag of words, or a class that does not occur, are content like those before them."""
DEEPEST = 3
"""Mappings and sequences in each other that are looked into."""
LARGEST = 1 << 24
"""Elements of a tensor above which its padding is not counted: that would take longer than a watched step may."""


def paddings(torch: Any, tensor: Any) -> tuple[float, float] | None:
    """Shares of padding behind each sample's last content, and behind the last content of all samples.

    Along dimension 1, of images along height and width.

    Of three dimensions along 1, or along 2 where it is longer: time may stand behind the channels. Content with as
    much room before it as behind it was put into the middle (a digit in its frame), and is not padded.

    Padding is zeros; in whole numbers of two dimensions (tokens) it is whatever stands at the end of most samples.
    None: not countable (another device, one dimension, too large). A batch in which no sample is padded gives 0.0, 0.0.
    """
    if tensor.device.type != "cpu" or tensor.dim() < 2 or not 0 < tensor.numel() <= LARGEST or tensor.is_sparse:
        return None
    if tensor.dim() == 3:
        found = [
            _behind(torch, tensor, tensor != 0, (dim,))
            for dim in (1, 2)
            if dim == 1 or tensor.shape[2] > tensor.shape[1]
        ]
        return max((f for f in found if f is not None), default=None)
    tokens = tensor.dim() == 2 and tensor.dtype in (torch.int64, torch.int32)
    content = tensor != (tensor[:, -1].mode().values if tokens else 0)
    return _behind(torch, tensor, content, (2, 3) if tensor.dim() == 4 else (1,))


def _behind(torch: Any, tensor: Any, content: Any, lengths: tuple[int, ...]) -> tuple[float, float] | None:
    """1 - the part of each sample up to its last content, along these dimensions, on the mean; and of all of them."""
    kept, common = torch.ones(tensor.shape[0]), 1.0
    for dim in lengths:
        size = tensor.shape[dim]
        others = [d for d in range(1, tensor.dim()) if d != dim]
        seen = content.amax(others) if others else content
        end = (seen * torch.arange(1, size + 1)).amax(1)
        start = size - (seen * torch.arange(size, 0, -1)).amax(1)
        padded = (start * 2 < size - end) & (seen.sum(1) >= DENSE * (end - start))
        ends = torch.where(padded | (end == 0), end, size)
        kept, common = kept * ends / size, common * float(ends.max()) / size
    kept = kept[kept > 0]
    return (float(1.0 - kept.mean()), 1.0 - common) if len(kept) else None


def tensors_given(torch: Any, args: Any) -> dict[str, Any]:
    """The tensors of the module call of which this is the pre-hook, by name where they have one.

    Also those in one mapping or sequence, as batches are; where there is none, those further inside
    (sentence-transformers' losses get a list of mappings). Global hooks are not told of keyword arguments, so these are
    read off torch's own frame.
    """
    values: dict[str, Any] = {str(k): a for k, a in enumerate(args)}
    frame = sys._getframe(2)
    if "kwargs" in frame.f_code.co_varnames + frame.f_code.co_freevars:
        values.update(frame.f_locals.get("kwargs") or {})
    found: dict[str, Any] = {}
    for depth in (1, DEEPEST):
        for name, value in values.items():
            _collect(torch, name, value, depth, found)
        if found:
            break
    return found


def _collect(torch: Any, name: str, value: Any, depth: int, found: dict[str, Any]) -> None:
    """Tensors by the key of their mapping or their place in a sequence; those of a further mapping keep its ending."""
    if type(value) is torch.Tensor:
        found[f"{len(found)}.{name}" if name in found else name] = value
    elif depth and type(value) is dict:
        for key, part in value.items():
            _collect(torch, str(key), part, depth - 1, found)
    elif depth and type(value) in (list, tuple):
        for number, part in enumerate(value):
            _collect(torch, f"[{number}]", part, depth - 1, found)


def _mean(shares: Iterable[float]) -> float:
    values = list(shares)
    return round(sum(values) / len(values), 4)


class Inputs:
    """What was given in the steps being watched."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._shapes: dict[int, dict[tuple[Any, ...], int]] = {}
        self._padding: list[tuple[float, float]] = []
        self._denormal: list[float] = []

    def see(self, module: Any, named: dict[str, Any]) -> None:
        """Tensors of one outermost call, unless the first comes from another module (as a loss' does).

        The caller has switched torch functions off, for the script's modes and subclasses.
        """
        torch = self.ctx.torch
        given = list(named.values())
        if not given or given[0].grad_fn is not None or not torch.is_grad_enabled():
            return
        shapes = self._shapes.setdefault(id(module), {})
        shape = tuple(tuple(a.shape) for a in given)
        shapes[shape] = shapes.get(shape, 0) + 1
        if torch._C._len_torch_dispatch_stack() or torch._C._autograd._profiler_enabled():
            return  # a mode or a profiler of the script's would see the operations
        with torch.no_grad():
            masks = [a for name, a in named.items() if name.endswith("attention_mask") and a.dim() == 2]
            found = [paddings(torch, a) for a in (given[0], *masks)]
        counted = [f for f in found if f is not None]
        if counted:
            self._padding.append(max(counted))
        self._denormal.append(share_of_denormals(torch, given, RUNS) or 0.0)

    def tell(self) -> None:
        """Say what was seen, if anything was: of the module that was given most shapes."""
        if self._shapes:
            shapes = max(self._shapes.values(), key=len)
            usual = max(shapes, key=lambda s: shapes[s])
            padding, common = (
                (_mean(shares) for shares in zip(*self._padding, strict=True)) if self._padding else (None,) * 2
            )
            value = {
                "calls": sum(shapes.values()),
                "shapes": len(shapes),
                "usual": [list(s) for s in usual],
                "padding_frac": padding,
                "common_frac": common,
            }
            if any(self._denormal):
                value["denormal_frac"] = round(sum(self._denormal) / len(self._denormal), 4)
            self.ctx.rec.emit(Setting("inputs", value))
        self._shapes, self._padding, self._denormal = {}, [], []
