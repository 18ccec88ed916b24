"""Several ranks: how DistributedDataParallel was set up, if a sampler is told the epoch, who waits at a barrier."""

from __future__ import annotations

import functools
import sys
from typing import Any
from weakref import WeakKeyDictionary

from hotlap.probe.context import Context
from hotlap.probe.own_frames import strip
from hotlap.probe.sites import Sites, counted_whole
from hotlap.records.rows import Setting

__all__ = ["install"]

TOLD_STARTS = 4
"""Epoch starts of a sampler that are told."""


class _Ranks:
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.made_at: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self.epochs: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()

    def look(self, index: int) -> None:
        """Tell of each root that is wrapped, and how many of its parameters got no gradient in this step."""
        wrapper = self.ctx.torch.nn.parallel.DistributedDataParallel
        for ref in list(self.ctx.points.roots.values()):
            root = ref()
            if isinstance(root, wrapper):
                self.ctx.rec.emit(Setting("ddp", {"step": index, **self._facts(root)}, self.made_at.get(root)))

    def _facts(self, root: Any) -> dict[str, Any]:
        with self.ctx.torch._C.DisableTorchFunction():
            trained = [p for p in root.parameters() if p.requires_grad]
            return {
                "find_unused": bool(root.find_unused_parameters),
                "static_graph": bool(root.static_graph),
                "bucket_view": bool(root.gradient_as_bucket_view),
                "parameters": len(trained),
                "without_gradient": sum(p.grad is None for p in trained),
                "gradient_bytes": sum(p.numel() * p.element_size() for p in trained),
            }

    def on_loader(self, loader: Any, validating: bool) -> None:
        """An epoch starts: which epoch was its distributed sampler told?"""
        module = sys.modules.get("torch.utils.data.distributed")
        sampler = getattr(loader, "sampler", None)
        if validating or module is None or not isinstance(sampler, module.DistributedSampler):
            return
        epochs = self.epochs.setdefault(sampler, [])
        if len(epochs) < TOLD_STARTS:
            epochs.append(int(sampler.epoch))
            value = {"class": type(sampler).__name__, "shuffle": bool(sampler.shuffle), "epochs": list(epochs)}
            self.ctx.rec.emit(Setting("sampler", value, self.ctx.rec.frames.user_number() or None))


def install(ctx: Context, sites: Sites) -> None:
    """Note where models are wrapped, look at samplers as epochs start, and time ``torch.distributed.barrier``."""
    ranks = _Ranks(ctx)
    wrapper = ctx.torch.nn.parallel.DistributedDataParallel
    ctx.undo.replace(wrapper, "__init__", _noting_line(wrapper.__init__, ranks))
    ctx.rec.on_look.append(ranks.look)

    def on_loader(loader: Any, validating: bool) -> None:
        try:
            ranks.on_loader(loader, validating)
        except Exception as err:
            ctx.failed("sampler", err)

    ctx.points.on_loader.append(on_loader)
    ctx.undo.add(lambda: ctx.points.on_loader.remove(on_loader))
    barrier = getattr(ctx.torch.distributed, "barrier", None)
    if barrier is not None:
        compiling = ctx.torch.compiler.is_dynamo_compiling
        timed = counted_whole(ctx.rec, sites, barrier, "barrier", "barrier", compiling)
        ctx.undo.replace(ctx.torch.distributed, "barrier", timed)


def _noting_line(original: Any, ranks: _Ranks) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(self, *args, **kwargs)
        except BaseException as err:
            strip(err)
            raise
        ranks.made_at[self] = ranks.ctx.rec.frames.user_number()

    return __init__
