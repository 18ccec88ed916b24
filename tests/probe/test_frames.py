"""Which frames of a stack are kept."""

from __future__ import annotations

import os
import sys
from types import CodeType
from typing import Any

from hotlap.probe.frames import FrameTable
from hotlap.records.rows import Frame, Stack

NEST = "def {name}(call):\n    return call()\n"


def library(name: str, call: Any) -> Any:
    """``call`` called by a function of that name in a library."""
    scope: dict[str, Any] = {}
    file = os.path.join(os.path.dirname(os.__file__), "trainer.py")
    exec(compile(NEST.format(name=name), file, "exec"), scope)
    return lambda: scope[name](call)


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
    return [functions[f] for f in stack.f if functions[f] != "<lambda>"]


def test_what_tells_is_kept_however_far_in_the_stack_is() -> None:
    assert kept("run", "_save_checkpoint", "collect", "a", "b", "c") == ["_save_checkpoint", "a", "b", "c"]
    logs = ("_maybe_log_save_evaluate", "log", "on_log", "a", "b", "c")
    assert kept("run", *logs) == ["_maybe_log_save_evaluate", "on_log", "a", "b", "c"]
    assert kept("run", "advance", "step", "a", "b") == ["step", "a", "b"]
