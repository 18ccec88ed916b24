"""A training that has no optimizer and changes its weights by hand: there each backward pass ends a step.

    loss.backward()
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-lr)

Nothing of torch's is called that could end a step. That there is no optimizer is known once some backward passes have
gone by without one in the whole process: a loop that accumulates gradients over many batches has made its own by then.
"""

from __future__ import annotations

import gc
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.detail import Detail
from hotlap.probe.step import Steps
from hotlap.probe.validation import Validations

__all__ = ["NoOptimizer", "install"]

PATIENCE = 6
"""Backward passes without an optimizer before it is looked for."""
SAYS = "There is no torch optimizer in this process: each backward pass counts as a step."


class NoOptimizer:
    """Ends steps while no optimizer does."""

    def __init__(self, ctx: Context, steps: Steps, validations: Validations, detail: Detail) -> None:
        self._ctx = ctx
        self._steps = steps
        self._validations = validations
        self._detail = detail
        self._left = PATIENCE
        self._active = False

    def after_backward(self) -> None:
        """A backward pass of the training thread has ended, and its phase with it."""
        if self._steps.anchor is not None:  # it came after all
            self._active = False
            return
        rec = self._ctx.rec
        if self._active:
            if rec.brief:
                self._detail.close(rec.clock())
            else:
                rec.end_step()
        elif self._left:
            self._left -= 1
            if not self._left:
                self._look()

    def _look(self) -> None:
        """Look through all objects, once: is there an optimizer, and what else is trained?"""
        torch = self._ctx.torch
        optimizer, parameter = torch.optim.Optimizer, torch.nn.Parameter
        trained: set[int] = set()
        for found in gc.get_objects():
            kind = type(found)  # isinstance would ask objects that stand for others (proxies, mocks)
            if issubclass(kind, optimizer):
                return
            if issubclass(kind, parameter) and _has_grad(found):
                trained.add(id(found))
        if trained:
            self._validations.parameters |= trained
            self._active = True
            self._ctx.note("optimizer", SAYS)


def _has_grad(parameter: Any) -> bool:
    return bool(parameter.is_leaf and parameter.grad is not None)


def install(ctx: Context, steps: Steps, validations: Validations, detail: Detail) -> None:
    """Register behind each backward pass."""
    ctx.points.after_backward.append(NoOptimizer(ctx, steps, validations, detail).after_backward)
