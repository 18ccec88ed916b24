"""Where a step ends: at the update of the optimizer that sets the loop's rhythm.

With several optimizers (a GAN) the rhythm is the newest one's: it takes its first step last in the loop. Should it stop
stepping while another goes on, the other takes over. A GradScaler that skips an update still ends a step.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from threading import get_ident
from types import FunctionType, MethodType
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.detail import Detail
from hotlap.probe.own_frames import strip
from hotlap.probe.recorder import OPTIMIZER
from hotlap.probe.validation import Validations

__all__ = ["Steps", "install"]

_CLOSURES = (FunctionType, MethodType, functools.partial)
"""What may compute a loss again. A module or another object that a step is given is no closure."""
PATIENCE = 50
"""Updates of others without one of the anchor's, after which the anchor is given up (or 4x its usual gap)."""


class Steps:
    """The optimizers seen, and which of them ends a step."""

    def __init__(self, ctx: Context, validations: Validations, detail: Detail) -> None:
        self.ctx = ctx
        self.rec = ctx.rec
        self.validations = validations
        self.detail = detail
        self.known: dict[int, Any] = {}
        self.anchor: Any = None
        self.updates = 0
        """Updates seen, of any optimizer."""
        self.on_first_update: list[Callable[[Any], None]] = []
        self.others = 0
        self._usual_gap = 0
        self.opened: Any = None
        self.scaling = False
        """A GradScaler's step is under way, and its phase is open."""
        self.rec.hooks.add(ctx.torch.optim.Optimizer.profile_hook_step(lambda: None), OPTIMIZER)

    def meet(self, optimizer: Any) -> None:
        """The first update of an optimizer: it becomes the anchor."""
        key = id(optimizer)
        found = self.known.get(key)
        if found is not None and found() is optimizer:
            return
        self.known[key] = weakref.ref(optimizer)
        if self.rec.step_index == 0 and not self.updates:
            self.rec.thread = get_ident()  # whoever trains is the training thread
        self.anchor = weakref.ref(optimizer)
        self.others = self._usual_gap = 0
        for group in optimizer.param_groups:
            self.validations.parameters.update(id(p) for p in group["params"])
        for callback in self.on_first_update:
            callback(optimizer)

    def before(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Global pre-hook: open the phase; a closure's own work is taken out of it again."""
        rec = self.rec
        found = self.known.get(id(optimizer))
        if found is None or found() is not optimizer:
            try:
                self.meet(optimizer)
            except Exception as err:
                self.ctx.failed("optimizer", err)
        if get_ident() != rec.thread:
            return None
        if self.ctx.points.validating:
            self.validations.end_by_backward()
        rec.sign_of_training()
        if rec.cur == OPTIMIZER and (self.opened is not None or self.scaling):
            rec.leave()  # an update that raised never came to its post-hook; and a scaler's phase ends here
        self.scaling = False
        self.opened = optimizer if rec.enter(OPTIMIZER) else None
        for callback in tuple(self.ctx.points.before_step):  # one that fails is removed
            callback(optimizer)
        if self.opened is None:
            return None
        if len(args) > 1 and isinstance(args[1], _CLOSURES):
            self.detail.never = True
            return (args[0], self._outside(args[1]), *args[2:]), kwargs
        if kwargs and isinstance(kwargs.get("closure"), _CLOSURES):
            self.detail.never = True
            return args, {**kwargs, "closure": self._outside(kwargs["closure"])}
        return None

    def _outside(self, closure: Callable[..., Any]) -> Callable[..., Any]:
        rec = self.rec

        @functools.wraps(closure)
        def run(*args: Any, **kwargs: Any) -> Any:
            self.validations.loads.count.teller = 0  # one batch, however often its loss is computed
            if rec.cur == OPTIMIZER:
                rec.leave()
            try:
                return closure(*args, **kwargs)
            except BaseException as err:
                strip(err)
                raise
            finally:
                if rec.cur is None:
                    rec.enter(OPTIMIZER)

        return run

    def after(self, optimizer: Any) -> None:
        """Global post-hook."""
        rec = self.rec
        if get_ident() != rec.thread:
            return
        if self.opened is optimizer:
            self.opened = None
            if rec.cur == OPTIMIZER:
                rec.leave()
        self.updated(optimizer)

    def updated(self, optimizer: Any) -> None:
        """An update is complete (or was skipped by a GradScaler): perhaps a step is."""
        self.updates += 1
        anchor = self.anchor() if self.anchor is not None else None
        if anchor is optimizer:
            self._usual_gap = max(self._usual_gap, self.others)
            self.others = 0
            self.rec.end_step()
            return
        self.others += 1
        if anchor is None or self.others > max(PATIENCE, 4 * self._usual_gap):
            self.anchor = weakref.ref(optimizer)
            self.others = self._usual_gap = 0
            self.rec.end_step()


def install(ctx: Context, validations: Validations, detail: Detail) -> Steps:
    """Register the global optimizer hooks; replace ``GradScaler.step``."""
    torch, rec = ctx.torch, ctx.rec
    steps = Steps(ctx, validations, detail)
    is_compiling = torch.compiler.is_dynamo_compiling
    clock, known, points = rec.clock, steps.known, ctx.points

    def before(optimizer: Any, args: Any, kwargs: Any) -> Any:
        if is_compiling():
            return None
        found = known.get(id(optimizer))
        if rec.brief and found is not None and found() is optimizer and get_ident() == rec.thread:
            return None
        if (
            found is None
            or found() is not optimizer
            or rec.cur is not None
            or kwargs
            or len(args) > 1
            or points.before_step
            or rec.step_start is None
            or get_ident() != rec.thread
        ):
            return steps.before(optimizer, args, kwargs)
        rec.cur = OPTIMIZER  # from here on as in Steps.before, without the calls
        rec.gc_ns = 0
        steps.opened = optimizer
        rec.t0 = clock()
        return None

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        anchor = steps.anchor
        if rec.brief and anchor is not None and anchor() is optimizer and not steps.others:
            if get_ident() == rec.thread:
                steps.updates += 1
                detail.close(clock())
            return
        if (
            steps.opened is not optimizer
            or rec.cur != OPTIMIZER
            or anchor is None
            or anchor() is not optimizer
            or steps.others
            or get_ident() != rec.thread
        ):
            return steps.after(optimizer)
        now = clock()
        rec.acc[OPTIMIZER] += now - rec.t0 - rec.gc_ns
        rec.cur = None
        steps.opened = None
        steps.updates += 1
        rec.close_step(now)

    hooks = sys.modules["torch.optim.optimizer"]  # torch.optim deletes the submodule's name from itself
    ctx.undo.add(hooks.register_optimizer_step_pre_hook(before).remove)
    ctx.undo.add(hooks.register_optimizer_step_post_hook(after).remove)
    _watch_scaler(ctx, steps)
    return steps


def _watch_scaler(ctx: Context, steps: Steps) -> None:
    """``GradScaler.step``: a step that it skips (an overflow) is one all the same."""
    torch, rec = ctx.torch, ctx.rec
    scaler_step = torch.amp.GradScaler.step

    @functools.wraps(scaler_step)
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        seen, brief = steps.updates, rec.brief
        # It asks the device whether a gradient overflowed: a wait of the update's, not of a line of the user's.
        opened = rec.step_start is not None and rec.enter(OPTIMIZER)
        steps.scaling = opened
        try:
            result = scaler_step(self, optimizer, *args, **kwargs)
        except BaseException as err:
            strip(err)
            raise
        finally:
            if opened and steps.scaling and rec.cur == OPTIMIZER:
                if not brief:
                    rec.leave()
                rec.cur = None
            steps.scaling = False
        if steps.updates == seen and get_ident() == rec.thread:
            try:
                steps.meet(optimizer)
                steps.updated(optimizer)
            except Exception as err:
                ctx.failed("optimizer", err)
        return result

    ctx.undo.replace(torch.amp.GradScaler, "step", step)
