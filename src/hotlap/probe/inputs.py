"""What the outermost modules are given in training: how many shapes, and how much of it is padding."""

from __future__ import annotations

from typing import Any

from hotlap.probe.context import Context
from hotlap.records.rows import Setting

__all__ = ["Inputs", "padding_frac"]

LARGEST = 1 << 24
"""Elements of a tensor above which its padding is not counted: that would take longer than a watched step may."""


def padding_frac(torch: Any, tensor: Any) -> float | None:
    """Share of zeros behind each sample's last content: along dimension 1, of images along height and width.

    None: not countable (another device, one dimension, too large). A batch in which no sample is padded gives 0.0.
    """
    if tensor.device.type != "cpu" or tensor.dim() < 2 or not 0 < tensor.numel() <= LARGEST or tensor.is_sparse:
        return None
    lengths = (2, 3) if tensor.dim() == 4 else (1,)
    content = tensor != 0
    kept = torch.ones(tensor.shape[0])
    for dim in lengths:
        others = [d for d in range(1, tensor.dim()) if d != dim]
        seen = content.amax(others) if others else content
        positions = torch.arange(1, tensor.shape[dim] + 1)
        kept = kept * (seen * positions).amax(1) / tensor.shape[dim]
    kept = kept[kept > 0]
    return float(1.0 - kept.mean()) if len(kept) else None


class Inputs:
    """What was given in the steps being watched."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._shapes: dict[int, dict[tuple[Any, ...], int]] = {}
        self._padding: list[float] = []

    def see(self, module: Any, args: Any) -> None:
        """Positional arguments of one outermost call, unless the first comes from another module (as a loss' does).

        The caller has switched torch functions off, for the script's modes and subclasses.
        """
        torch = self.ctx.torch
        given = [a for a in args if type(a) is torch.Tensor]
        if not given or given[0].grad_fn is not None or not torch.is_grad_enabled():
            return
        shapes = self._shapes.setdefault(id(module), {})
        shape = tuple(tuple(a.shape) for a in given)
        shapes[shape] = shapes.get(shape, 0) + 1
        if torch._C._len_torch_dispatch_stack():
            return  # a mode of the script's would see the operations
        with torch.no_grad():
            found = padding_frac(torch, given[0])
        if found is not None:
            self._padding.append(found)

    def tell(self) -> None:
        """Say what was seen, if anything was: of the module that was given most shapes."""
        if self._shapes:
            shapes = max(self._shapes.values(), key=len)
            usual = max(shapes, key=lambda s: shapes[s])
            padding = round(sum(self._padding) / len(self._padding), 4) if self._padding else None
            value = {
                "calls": sum(shapes.values()),
                "shapes": len(shapes),
                "usual": [list(s) for s in usual],
                "padding_frac": padding,
            }
            self.ctx.rec.emit(Setting("inputs", value))
        self._shapes, self._padding = {}, []
