"""Networks that are called in training and never trained (a teacher, a frozen trunk): what they take, and how they run.

For a few steps now and then, global module hooks time the outermost such module (and look at what the outermost module
of all is given); in between nothing is installed. Where anything was compiled they stay away, since compiled code asks
whether there are hooks.
"""

from __future__ import annotations

import sys
import weakref
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.inputs import Inputs, tensors_given
from hotlap.probe.model_facts import is_compiled, model_facts
from hotlap.probe.module_walk import parameters_of
from hotlap.records.rows import Setting

__all__ = ["Frozen", "install"]

AT_STEPS = (6, 20, 100)
"""The steps after which some are watched; some of :data:`~hotlap.probe.recorder.LOOKS`."""
STEPS = 4
"""How many."""
MOST = 4
"""Networks told of one step, the longest first."""


class Frozen:
    """The steps being watched, and what was seen in them."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._optimizers: list[Any] = []
        self._trained: set[int] = set()
        self._kinds: dict[int, bool] = {}
        self._found: dict[int, dict[str, Any]] = {}
        self._handles: list[Any] = []
        self._open: tuple[int, int] | None = None
        self._outer: int | None = None
        self._step = -1
        self._inputs = Inputs(ctx)

    def optimizer(self, optimizer: Any) -> None:
        """The first update of an optimizer: its parameters are trained."""
        self._optimizers.append(weakref.ref(optimizer))

    def look(self, index: int) -> None:
        """Watch the steps that begin now."""
        if index not in AT_STEPS or self._handles or self._anything_compiled():
            return
        optimizers = [o for ref in self._optimizers if (o := ref()) is not None]
        if not optimizers:  # weights are changed by hand (probe/no_optimizer): whose, is not known
            return
        self._trained = {id(p) for o in optimizers for group in o.param_groups for p in group["params"]}
        self._kinds, self._found, self._open, self._outer = {}, {}, None, None
        self._step = self.ctx.rec.step_index
        modules = sys.modules["torch.nn.modules.module"]
        self._handles = [
            modules.register_module_forward_pre_hook(self._before),
            modules.register_module_forward_hook(self._after),
        ]

    def _anything_compiled(self) -> bool:
        dynamo = sys.modules.get("torch._dynamo.utils")
        if dynamo is not None and any(dynamo.counters["frames"].values()):
            return True
        roots = [root for ref in self.ctx.points.roots.values() if (root := ref()) is not None]
        return any(is_compiled(self.ctx.torch, root) for root in roots)

    def _is_frozen(self, module: Any) -> bool:
        """Whether it has parameters and no optimizer trains any of them."""
        known = self._kinds.get(id(module))
        if known is None:
            own = list(parameters_of(module))
            known = self._kinds[id(module)] = bool(own) and not any(
                p.requires_grad and id(p) in self._trained for p in own
            )
        return known

    def _before(self, module: Any, args: Any) -> None:
        rec = self.ctx.rec
        if rec.step_index >= self._step + STEPS:
            return self._tell()
        if self._open is not None or self.ctx.points.validating or get_ident() != rec.thread:
            return
        try:
            with self.ctx.torch._C.DisableTorchFunction():  # a mode or subclass of the script's sees none of it
                if self._outer is None:
                    self._outer = id(module)
                    self._inputs.see(module, tensors_given(self.ctx.torch, args))
                if self._is_frozen(module):
                    self._note(module, args)
                    self._open = (id(module), rec.clock())
        except Exception as err:  # it looks at the script's own objects
            self.ctx.failed("frozen", err)

    def _after(self, module: Any, args: Any, output: Any) -> None:
        if self._open is not None and self._open[0] == id(module) and get_ident() == self.ctx.rec.thread:
            self._found[id(module)]["s"] += (self.ctx.rec.clock() - self._open[1]) / 1e9
            self._open = None
        if self._outer == id(module):
            self._outer = None

    def _note(self, module: Any, args: Any) -> None:
        torch = self.ctx.torch
        value = self._found.get(id(module))
        if value is not None:
            value["calls"] += 1
            return
        facts = model_facts(torch, module)
        own = list(parameters_of(module))
        graded = torch.is_grad_enabled()
        given = any(isinstance(a, torch.Tensor) and a.requires_grad for a in args)
        kind = facts["device"].partition(":")[0]
        convolutions = ("conv_layers", "conv_frac", "conv2d_layers", "conv2d_frac")
        told = ("class", "parameters", "modules", "dtype", "device", *convolutions)
        value = {key: facts[key] for key in told}
        value |= {
            "calls": 1,
            "s": 0.0,
            "training": bool(module.training),
            "recorded": graded and (given or any(p.requires_grad for p in own)),
            "asked": graded and given,
            "frozen": not any(p.requires_grad for p in own),
            "autocast": torch.is_autocast_enabled(kind),
            "channels_last": facts["channels_last"],
        }
        value["frame"] = self.ctx.rec.frames.user_number(2) or None
        self._found[id(module)] = value

    def close(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _tell(self) -> None:
        """The steps are over: the hooks go, what was seen is said."""
        self.close()
        for value in sorted(self._found.values(), key=lambda v: -v["s"])[:MOST]:
            frame = value.pop("frame")
            value["calls"] /= STEPS
            value["s"] = value["s"] / STEPS if value["device"] == "cpu" else None  # a launch's time says nothing
            self.ctx.rec.emit(Setting("frozen", value, frame))
        self._found = {}
        self._inputs.tell()


def install(ctx: Context) -> Frozen:
    """Watch a few steps for networks that are called and not trained."""
    found = Frozen(ctx)
    ctx.rec.on_look.append(found.look)
    ctx.undo.add(found.close)
    return found
