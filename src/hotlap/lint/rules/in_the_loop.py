"""Calls that cost a step each time: garbage collection, emptying the cache, saving, zeroing in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotlap.lint.loops import Training
from hotlap.lint.place import problem
from hotlap.lint.problem import Problem
from hotlap.lint.script import Script, keyword
from hotlap.records.edits import Edit

CAUSES = ("empty-cache", "gc-collect", "checkpoint-blocking", "zero-grad")

_EACH_STEP = {
    "torch.cuda.empty_cache": (
        "empty-cache", "torch.cuda.empty_cache() gives memory back that the next step asks for again, and waits.",
        "Remove it: the allocator reuses its memory.",
    ),
    "gc.collect": (
        "gc-collect", "gc.collect() walks every object of the process at each step.",
        "Remove it, or collect once an epoch.",
    ),
    "torch.save": (
        "checkpoint-blocking", "torch.save writes a checkpoint at each step, and the step waits.",
        "Save every so many steps, or once an epoch.",
    ),
}  # fmt: skip
_REMOVABLE = ("torch.cuda.empty_cache", "gc.collect")


def find(script: Script, training: Training) -> Iterator[Problem]:
    """What runs at each step without a condition; ``set_to_none=False`` where nothing else uses ``.grad``."""
    reads_grad = any(n.attr == "grad" for n in script.all(ast.Attribute))
    for call in script.all(ast.Call):
        name = script.full(call.func)
        if name in _EACH_STEP and training.each_step(call) is not None:
            cause, message, advice = _EACH_STEP[name]
            alone = isinstance(script.parent[call], ast.Expr) and name in _REMOVABLE
            last = name.rpartition(".")[2]
            edits = [Edit("remove", script.name, call.lineno, target=last)] if alone else []
            yield problem(script, call, cause, message, advice, edits)
        kept = keyword(call, "set_to_none")
        if name.endswith(".zero_grad") and isinstance(kept, ast.Constant) and kept.value is False and not reads_grad:
            yield problem(
                script, call, "zero-grad", "set_to_none=False writes zeroes into every gradient, and adds to them.",
                "Leave it out where every parameter gets a gradient in each step: one without is then passed over, "
                "its momentum and weight decay too.",
            )  # fmt: skip
