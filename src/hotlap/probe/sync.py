"""Where the host asks for a value of the device: ``Tensor.item`` and its kin.

Timed only when no phase is open: inside a forward or a validation the wait belongs to that.
"""

from __future__ import annotations

from hotlap.probe.context import Context
from hotlap.probe.lazy_parameters import let_through
from hotlap.probe.recorder import SYNC
from hotlap.probe.sites import Sites, counted

__all__ = ["METHODS", "install"]

METHODS = ("item", "cpu", "numpy", "tolist", "__bool__", "__float__", "__int__")


def install(ctx: Context, sites: Sites) -> None:
    """Replace the methods on ``torch.Tensor`` (they are C methods of its base) and ``torch.cuda.synchronize``."""
    tensor, rec = ctx.torch.Tensor, ctx.rec
    compiling = ctx.torch.compiler.is_dynamo_compiling
    for name in METHODS:
        original = getattr(tensor, name)
        ours = counted(rec, sites, original, "sync", name.strip("_"), SYNC, compiling)
        ours.__module__, ours.__qualname__ = "torch", f"Tensor.{name}"  # where pickle finds it; a C method has neither
        let_through(ctx, original, ours)
        ctx.undo.replace(tensor, name, ours)
    cuda = ctx.torch.cuda
    ctx.undo.replace(cuda, "synchronize", counted(rec, sites, cuda.synchronize, "sync", "synchronize", SYNC, compiling))
