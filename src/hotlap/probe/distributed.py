"""Several ranks: how DistributedDataParallel was set up, if a sampler is told the epoch, who waits at a barrier."""

from __future__ import annotations

import functools
import sys
from typing import Any
from weakref import WeakKeyDictionary

from hotlap.probe.context import Context
from hotlap.probe.made_at import MadeAt
from hotlap.probe.recorder import Recorder
from hotlap.probe.sites import Sites, counted_whole
from hotlap.records.rows import Setting

__all__ = ["install"]

TOLD_STARTS = 4
"""Epoch starts of a sampler that are told."""


class _Ranks:
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.made_at = MadeAt(ctx, ctx.torch.nn.parallel.DistributedDataParallel)
        self.epochs: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()
        self.reached: WeakKeyDictionary[Any, _Reached] = WeakKeyDictionary()

    def look(self, index: int) -> None:
        """Tell of each root that is wrapped, and how many of its parameters a backward since the last look left out."""
        wrapper = self.ctx.torch.nn.parallel.DistributedDataParallel
        for ref in list(self.ctx.points.roots.values()):
            root = ref()
            if isinstance(root, wrapper):
                self.ctx.rec.emit(Setting("ddp", {"step": index, **self._facts(root)}, self.made_at.of(root)))

    def let_go(self) -> None:
        """Take back what still waits for a backward."""
        for reached in self.reached.values():
            reached.let_go()
        self.reached.clear()

    def _facts(self, root: Any) -> dict[str, Any]:
        with self.ctx.torch._C.DisableTorchFunction():
            trained = [p for p in root.parameters() if p.requires_grad]
            before = self.reached.pop(root, None)
            if before is not None:
                before.let_go()
            if root.find_unused_parameters and not root.static_graph:
                self.reached[root] = _Reached(self.ctx.rec, trained)
            return {
                "find_unused": bool(root.find_unused_parameters),
                "static_graph": bool(root.static_graph),
                "bucket_view": bool(root.gradient_as_bucket_view),
                "parameters": len(trained),
                "unreached": None if before is None else before.left_out,
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


class _Reached:
    """Which parameters this process' own backward reaches in the next step that has one. Their gradients do not say it:
    DDP writes the mean of all ranks into each that any rank has reached."""

    def __init__(self, rec: Recorder, parameters: list[Any]) -> None:
        self._rec = rec
        self._step: int | None = None
        self._numbers: set[int] = set()
        self._count = len(parameters)
        self._handles: list[Any] = []
        for number, parameter in enumerate(parameters):
            self._handles.append(parameter.register_post_accumulate_grad_hook(functools.partial(self._reach, number)))

    def _reach(self, number: int, parameter: Any) -> None:
        """Called once for each parameter, perhaps on a device's own thread: then the hook goes."""
        self._handles[number].remove()
        if self._step is None:
            self._step = self._rec.step_index
        if self._step == self._rec.step_index:
            self._numbers.add(number)

    @property
    def left_out(self) -> int | None:
        """Parameters that it did not reach; None: there was no backward."""
        return None if self._step is None else self._count - len(self._numbers)

    def let_go(self) -> None:
        """Those that were never reached are waited for no longer."""
        for handle in self._handles:
            handle.remove()


def install(ctx: Context, sites: Sites) -> None:
    """Note where models are wrapped, look at samplers as epochs start, and time ``torch.distributed.barrier``."""
    ranks = _Ranks(ctx)
    ctx.rec.on_look.append(ranks.look)
    ctx.undo.add(ranks.let_go)

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
