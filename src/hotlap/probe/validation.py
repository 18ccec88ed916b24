"""Where a validation begins and ends.

It begins when a trained module is put in eval mode, or at a forward of one without gradients that reads from a fresh
loader or is run by a function that says it evaluates. A script may leave `eval()` and `no_grad()` out: it also begins,
loosely, at a forward with gradients of batches that no step has trained on, at a line that never trained. A copy of a
trained module (an average of its weights) that is put in eval mode begins one in such a function alone, for a teacher
may be put in eval mode in every step. It ends when the module is put back in train mode, or when training visibly goes
on. Only what certainly belonged to the validation stays booked on it: batches that training then used are given back.
"""

from __future__ import annotations

import functools
import re
import sys
import weakref
from threading import get_ident
from types import CodeType, FrameType
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.module_walk import parameters_of
from hotlap.probe.own_frames import strip
from hotlap.probe.recorder import DATA_WAIT, FORWARD, VALIDATION
from hotlap.records.rows import Event

__all__ = ["MAX_EVENTS", "Validations", "install"]

MAX_EVENTS = 20_000
"""Event rows of one kind that are written; later ones are in the steps' phases only."""

Chain = tuple[tuple[CodeType, int], ...]
"""The user's lines of a stack, innermost first."""
_EVALUATES = re.compile(r"(?:^|_)(?:eval(?:uat\w+)?|val|valid(?:at\w+)?|test|accuracy)(?:_|$)")
"""Functions that say that they evaluate, in whole words: `evaluate`, `test_accuracy`; not `latest`, nor `score`."""


class Validations:
    """The validation that is open, if one is, and what is only tentatively part of it (its tail)."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.rec = ctx.rec
        self.points = ctx.points
        self.loads: Any = None
        """The loader probe; set when it is installed."""
        self.parameters: set[int] = set()
        """Ids of the parameters that optimizers have stepped."""
        self.trains_at: set[Chain] = set()
        """Lines that called a root in training."""
        self._owners: dict[int, tuple[Any, int, bool]] = {}
        self._events = 0
        self._clear()

    def _clear(self) -> None:
        self.begun = self.last = 0
        self.explicit = self.by_copy = self.confirmed = False
        self.chain: Chain | None = None
        self.stack: int | None = None
        self.batches = self.wait_ns = self.forward_ns = self.forwards = 0
        self.graded = False
        self.tail_wait = self.tail_forward = self.tail_batches = self.given_back = 0
        self.tail_states: list[Any] = []
        self.tail_known = False

    def trained(self, module: Any) -> bool:
        """Whether the module holds parameters that an optimizer has stepped."""
        if not self.parameters:
            return False
        found = self._owners.get(id(module))
        if found is not None and found[0]() is module and found[1] == len(self.parameters):
            return found[2]
        owns = any(id(p) in self.parameters for p in parameters_of(module))
        self._owners[id(module)] = (weakref.ref(module), len(self.parameters), owns)
        return owns

    def evaluates(self, frame: FrameType | None) -> bool:
        """Whether the user's function that is at work says by its name that it evaluates."""
        user = self.rec.frames.user_frame(frame)
        while user is not None and user.f_code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"):
            user = self.rec.frames.user_frame(user.f_back)
        return user is not None and _EVALUATES.search(user.f_code.co_name) is not None

    def is_copy(self, module: Any) -> bool:
        """Whether the module is built like one that is trained: of its class, with as many parameters."""
        found = (root() for root in self.points.roots.values())
        like = [root for root in found if type(root) is type(module) and self.trained(root)]
        return bool(like) and len(list(parameters_of(module))) in {len(list(parameters_of(root))) for root in like}

    def begin(self, frame: FrameType | None, explicit: bool, chain: Chain | None = None) -> None:
        """Open a validation now, unless a phase is open that it would have to interrupt.

        ``chain``: the lines of a loose one, which may be training after all; its own is what was fetched before more.
        """
        rec = self.rec
        if rec.brief and rec.hooks.phase(frame) is not None:
            return
        if self.points.validating or not rec.enter(VALIDATION):
            return
        rec.look_closely()
        self._clear()
        self.begun = self.last = rec.t0
        self.explicit = explicit
        user = rec.frames.user_frame(frame)
        self.stack = rec.frames.stack(user)
        if not explicit and self.loads is not None:
            self.tail_wait, self.tail_states = self.loads.take_fresh()
            self.tail_batches = sum(s.batches for s in self.tail_states)
            self.given_back = self.tail_wait
            if chain is None:
                self._confirm()
                self.loads.count.samples = 0
        self.chain = chain
        self.points.validating = True
        for callback in tuple(self.points.on_validation_begin):
            callback(user)

    def trains_again(self) -> bool:
        """Whether a forward with gradients of a module in train mode is a step's, and the validation over."""
        return self.chain is None or self.tail_known or not self.tail_batches

    def waited(self, state: Any, spent: int, got: bool) -> None:
        """The script took a batch from an iterator (``got``), or learned that there is none, while this is open."""
        if not got:
            self._confirm()
            self.last = self.rec.clock()
            return
        if self.tail_forward:
            self._confirm()
        self.tail_wait += spent
        self.tail_batches += 1
        self.tail_known = self.tail_known or bool(state.info.training)
        if state not in self.tail_states:
            self.tail_states.append(state)

    def forwarded(self, spent: int, graded: bool, ours: bool) -> None:
        """A module was called (``ours``: a trained one). Without gradients it proves that the validation goes on."""
        self.tail_forward += spent
        if ours or self.by_copy:
            self.forwards += 1
            self.graded = self.graded or graded
        if not graded and self.chain is None:  # a loose one may be training with a teacher
            self._confirm()

    def _confirm(self) -> None:
        self.confirmed = True
        self.rec.acc[DATA_WAIT] -= self.given_back
        self.rec.acc[VALIDATION] += self.given_back
        self.begun -= self.given_back
        self.given_back = 0
        self.batches += self.tail_batches
        self.wait_ns += self.tail_wait
        self.forward_ns += self.tail_forward
        for state in self.tail_states:
            state.for_validation()
        self.tail_states = []
        self.tail_wait = self.tail_forward = self.tail_batches = 0
        self.tail_known = False
        self.last = self.rec.clock()
        if self.chain is not None:
            self.loads.count.samples = 0

    def end_by_train(self) -> None:
        """The module was put back in train mode: all until now was validation, but a training batch already fetched."""
        if self.tail_known and not self.tail_forward:
            self._end(self.last)
        else:
            self._confirm()
            self._end(self.rec.clock())

    def end_by_backward(self) -> None:
        """Training goes on: the validation ended with the last thing that certainly belonged to it."""
        self._end(self.last)

    def end_by_pass(self) -> None:
        """A pass through the training loader begins: a loose validation is over, if it was one."""
        if self.chain is not None:
            self.end_now() if self.confirmed else self.end_by_backward()

    def end_now(self) -> None:
        """Something else begins that is no validation (a checkpoint)."""
        self._confirm()
        self._end(self.rec.clock())

    def _end(self, at: int) -> None:
        rec = self.rec
        if rec.cur != VALIDATION:
            return
        if self.chain is not None and not self.confirmed:
            self.trains_at.add(self.chain)
        rec.acc[VALIDATION] += max(0, at - rec.t0 - rec.gc_ns)
        rec.cur = None
        rec.acc[DATA_WAIT] += self.tail_wait - self.given_back
        rec.acc[FORWARD] += self.tail_forward
        self.points.validating = False
        if self.loads is not None:
            self.loads.give_fresh(self.tail_wait, self.tail_states)
        if (self.forwards or self.batches) and at > self.begun:
            self._events += 1
            if self._events <= MAX_EVENTS:
                seconds = {
                    "batches": float(self.batches), "data_wait_s": self.wait_ns / 1e9,
                    "forward_s": self.forward_ns / 1e9, "grad_mode": float(self.graded),
                }  # fmt: skip
                rec.emit(Event("validation", self.begun, at - self.begun, rec.step_index, self.stack, seconds))
        for callback in self.points.on_validation_end:
            callback()


def install(ctx: Context) -> Validations:
    """Replace ``Module.train`` (``eval`` calls it)."""
    found = Validations(ctx)
    rec = ctx.rec
    module_class = ctx.torch.nn.Module
    is_compiling = ctx.torch.compiler.is_compiling
    original = module_class.train
    inside = False

    def told(module: Any, mode: bool, frame: FrameType) -> None:
        if mode and ctx.points.validating:
            if found.trained(module):
                found.end_by_train()
        elif not mode and not ctx.points.validating and rec.cur is None:
            if found.trained(module):
                found.begin(frame, True)
            elif found.evaluates(frame) and found.is_copy(module):
                found.begin(frame, True)
                found.by_copy = ctx.points.validating

    @functools.wraps(original)
    def train(self: Any, mode: bool = True) -> Any:
        nonlocal inside
        if inside or is_compiling() or get_ident() != rec.thread or not found.parameters:
            return original(self, mode)
        inside = True
        try:
            result = original(self, mode)
        except BaseException as err:
            strip(err)
            raise
        finally:
            inside = False
        try:
            told(self, bool(mode), sys._getframe(1))
        except Exception as err:
            ctx.failed("validation", err)
        return result

    ctx.undo.replace(module_class, "train", train)
    return found
