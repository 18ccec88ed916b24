"""Forward passes: the outermost call of any module, by one replacement of ``nn.Module.__call__``.

Inside a compiled graph the replacement steps aside before it touches any state, so that nothing of it is guarded on.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any

from hotlap.probe.batches import batch_samples
from hotlap.probe.context import Context
from hotlap.probe.module_walk import parameters_of
from hotlap.probe.own_frames import strip
from hotlap.probe.recorder import FORWARD
from hotlap.probe.validation import Validations

__all__ = ["Forwards", "install"]


class Forwards:
    """Which modules are roots, and what happens around an outermost call."""

    def __init__(self, ctx: Context, validations: Validations) -> None:
        self.ctx = ctx
        self.rec = ctx.rec
        self.points = ctx.points
        self.validations = validations
        self.depth = 0
        self.loads: Any = None
        """The loader probe; set when it is installed."""
        self.training_calls = 0
        """Outermost training calls of roots so far."""
        self.autocast: str | None = None
        """Data type of the last autocast region that a root's training call ran in."""
        self.around: Callable[[Callable[[], Any], Any], Any] | None = None
        """Runs training calls instead, while it is set (counts the calls of each line)."""
        self._grad_enabled = ctx.torch.is_grad_enabled
        self._unseen = ctx.torch._C.DisableTorchFunction
        """A context in which no torch function mode or subclass of the script's sees what Hotlap asks."""
        self._kinds: dict[int, tuple[Any, bool]] = {}
        self.plain: dict[int, tuple[Any, bool]] = {}
        """Modules whose graded call needs nothing but its time: weak reference, whether it is a root."""

    def is_root(self, module: Any) -> bool:
        """Whether the module has parameters that can be trained."""
        found = self._kinds.get(id(module))
        if found is not None and found[0]() is module:
            return found[1]
        with self._unseen():
            trains = any(p.requires_grad for p in parameters_of(module))
        self._kinds[id(module)] = (weakref.ref(module), trains)
        return trains

    def outermost(self, original: Callable[..., Any], module: Any, args: Any, kwargs: Any) -> Any:
        """An outermost module call on the training thread."""
        rec, points = self.rec, self.points
        graded = self._grad_enabled()
        root = False
        try:
            root = self.is_root(module)
            if root:
                self._about_to_call(module, graded)
            elif graded and not points.validating:
                self.plain[id(module)] = (weakref.ref(module), False)
        except Exception as err:
            self.ctx.failed("forward", err)
        validating = points.validating
        opened = rec.enter(FORWARD)
        begun = rec.t0 if opened else rec.clock()
        self.depth = 1
        try:
            if points.around_forward:
                return self._chain(original, module)(*args, **kwargs)
            if self.around is not None and graded and not validating:
                return self.around(functools.partial(original, module, *args, **kwargs), module)
            return original(module, *args, **kwargs)
        finally:
            self.depth = 0
            if opened and rec.cur == FORWARD:
                rec.leave()
            if validating and points.validating:
                self.validations.forwarded(rec.clock() - begun, graded, root)
            elif root and graded:
                self.called_in_training(module, args, kwargs)

    def _about_to_call(self, module: Any, graded: bool) -> None:
        points = self.points
        if points.validating:
            if graded and module.training and self.validations.trained(module) and self.validations.trains_again():
                self.validations.end_by_backward()
        elif not graded:
            if self.rec.step_index == 0 and not self.rec.micro:
                self.rec.not_yet()
            elif self.rec.cur is None and self.validations.trained(module):
                caller = sys._getframe(3)
                self.loads.count.takes_turn(id(module))
                if self.loads.may_validate() or not module.training:
                    self.validations.begin(caller, False)
                elif self.validations.evaluates(caller):
                    self.validations.begin(caller, False)
                    if self.rec.detail is not None:
                        self.rec.detail.never = True  # in brief nobody looks at forwards: the next would not be seen
        else:
            self.rec.sign_of_training()
            self._graded_call(module, sys._getframe(3))
        if graded and not points.validating:
            key = id(module)
            found = points.roots.get(key)
            if found is None or found() is not module:
                points.roots[key] = weakref.ref(module)
            self.plain[key] = (points.roots[key], True)

    def _graded_call(self, module: Any, caller: FrameType) -> None:
        """Remember who trains; batches of no training loader, at lines that never trained, are a validation's."""
        strange = self.loads is not None and self.loads.strange and self.rec.step_index > 0
        if id(module) in self.plain and not strange:
            return
        chain, frame = [], self.rec.frames.user_frame(caller)
        while frame is not None:
            chain.append((frame.f_code, frame.f_lineno))
            frame = self.rec.frames.user_frame(frame.f_back)
        known = tuple(chain)
        validations = self.validations
        if strange and self.rec.cur is None and known not in validations.trains_at and validations.trained(module):
            self.loads.strange = False
            validations.begin(caller, False, known)
        else:
            validations.trains_at.add(known)

    def called_in_training(self, module: Any, args: Any, kwargs: Any) -> None:
        """A graded call of a root has returned: where no loader says so, its arguments tell the samples."""
        self.training_calls += 1
        if self.loads is not None and self.loads.count.wanted(id(module)):
            try:
                with self._unseen():
                    samples = batch_samples(args) or batch_samples(tuple(kwargs.values()))
                self.loads.count.tell(id(module), samples, next(iter((*args, *kwargs.values())), None))
            except Exception as err:
                self.ctx.failed("samples", err)

    def _chain(self, original: Callable[..., Any], module: Any) -> Callable[..., Any]:
        call: Callable[..., Any] = functools.partial(original, module)
        for wrapper in self.points.around_forward:
            call = functools.partial(_wrapped, wrapper, module, call)
        return call


def _wrapped(wrapper: Any, module: Any, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    return wrapper(module, call, args, kwargs)


def install(ctx: Context, validations: Validations) -> Forwards:
    """Replace ``nn.Module.__call__``."""
    state = Forwards(ctx, validations)
    rec, points, plain = ctx.rec, ctx.points, state.plain
    clock, graded = rec.clock, ctx.torch.is_grad_enabled
    is_compiling = ctx.torch.compiler.is_dynamo_compiling
    original = ctx.torch.nn.Module.__call__

    @functools.wraps(original)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(self, *args, **kwargs)
        try:
            if state.depth or rec.brief or get_ident() != rec.thread:
                return original(self, *args, **kwargs)
            found = plain.get(id(self))
            if (
                found is None
                or rec.cur is not None
                or points.around_forward
                or found[0]() is not self
                or rec.step_start is None
                or points.validating
                or state.around is not None
                or state.loads.strange
                or not graded()
            ):
                return state.outermost(original, self, args, kwargs)
            rec.cur = FORWARD  # from here on as in outermost, without the calls
            rec.gc_ns = 0
            state.depth = 1
            rec.t0 = clock()
            try:
                return original(self, *args, **kwargs)
            finally:
                state.depth = 0
                if rec.cur == FORWARD:
                    rec.acc[FORWARD] += clock() - rec.t0 - rec.gc_ns
                    rec.cur = None
                if found[1]:
                    count = state.loads.count
                    if (count.samples or rec.samples) and not count.teller and not count.split:
                        state.training_calls += 1
                    else:
                        state.called_in_training(self, args, kwargs)
        except BaseException as err:
            strip(err)
            raise

    rec.hooks.add(__call__, FORWARD)
    ctx.undo.replace(ctx.torch.nn.Module, "__call__", __call__)
    return state
