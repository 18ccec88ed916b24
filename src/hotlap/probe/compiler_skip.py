"""Keeps ``torch.compile`` from compiling the probes themselves.

A frame of ours that dynamo meets on its own (below a graph break, or under a module that it skips) is left alone, as
torch's own ``Module.__call__`` is; a frame of ours inside a traced one is still inlined, where it steps aside.
"""

from __future__ import annotations

import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any

__all__ = ["skip_probes"]


def _codes(code: CodeType) -> list[CodeType]:
    found = [code]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += _codes(constant)
    return found


def _functions(module: ModuleType) -> list[FunctionType]:
    own = [v for v in vars(module).values() if getattr(v, "__module__", None) == module.__name__]
    methods = [m for c in own if isinstance(c, type) for m in vars(c).values()]
    return [f for f in own + methods if isinstance(f, FunctionType)]


def skip_probes(torch: Any) -> None:
    """Mark every function of this package. Does nothing where torch has no frame evaluation."""
    evaluation = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if evaluation is None:
        return
    skip = getattr(evaluation, "skip_code", None)  # until torch 2.6
    if skip is None:
        action = evaluation._FrameAction
        strategy = evaluation._FrameExecStrategy(action.SKIP, action.DEFAULT)

        def skip(code: CodeType) -> None:
            evaluation.set_code_exec_strategy(code, strategy)

    for name, module in list(sys.modules.items()):
        if name.startswith("hotlap.probe."):
            for function in _functions(module):
                for code in _codes(function.__code__):
                    skip(code)
