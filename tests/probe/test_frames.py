"""Which frames of a stack are kept."""

from __future__ import annotations

import functools
import os
import sys
from types import CodeType
from typing import Any

from hotlap.probe.frames import FrameTable
from hotlap.records.rows import Frame, Stack

LIBRARY = os.path.dirname(os.__file__)
NEST = "def {name}(call):\n    return call()\n"


def library(name: str, call: Any) -> Any:
    """``call`` called by a function of that name in a library, or of ``file:name``; ``user:name``: of the user's."""
    scope: dict[str, Any] = {}
    path, _, name = name.rpartition(":")
    file = "/home/user/train.py" if path == "user" else os.path.join(LIBRARY, path or "trainer.py")
    exec(compile(NEST.format(name=name), file, "exec"), scope)
    return functools.partial(scope[name], call)


def kept(*names: str) -> list[str]:
    """Functions kept of a stack of library functions, outermost first."""
    rows: list[Any] = []
    table = FrameTable(rows.append)

    def look() -> CodeType:
        table.stack(sys._getframe().f_back)
        return look.__code__

    call: Any = look
    for name in reversed(names):
        call = library(name, call)
    table.base = sys._getframe().f_code
    call()
    functions = {row.id: row.func for row in rows if isinstance(row, Frame)}
    (stack,) = [row for row in rows if isinstance(row, Stack)]
    return [functions[f] for f in stack.f]


def test_the_caller_of_a_hook_and_torchs_checkpoint_are_kept() -> None:
    calls, checkpoint = "torch/nn/modules/module.py:inner", "torch/utils/checkpoint.py:checkpoint"
    numpy = ("percentile", "_quantile", "partition")
    assert kept("run", calls, "user:record", *numpy) == ["inner", "record", *numpy]
    assert kept("run", calls, "user:forward", *numpy) == ["forward", *numpy], "there are many of these"
    assert kept("run", checkpoint, "a", "b", "c") == ["checkpoint", "a", "b", "c"]


def test_what_tells_is_kept_however_far_in_the_stack_is() -> None:
    assert kept("run", "_save_checkpoint", "collect", "a", "b", "c") == ["_save_checkpoint", "a", "b", "c"]
    logs = ("_maybe_log_save_evaluate", "log", "on_log", "a", "b", "c")
    assert kept("run", *logs) == ["_maybe_log_save_evaluate", "on_log", "a", "b", "c"]
    assert kept("run", "advance", "step", "a", "b") == ["step", "a", "b"]
