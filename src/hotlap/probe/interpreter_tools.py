"""Profilers and tracers of the interpreter that are on while the script trains."""

from __future__ import annotations

import sys
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.switch_lines import SwitchLines
from hotlap.records.rows import Setting

__all__ = ["install"]


_TORCHS = "torch.profiler with_stack"
"""A type of torch's C++ code, which has no name of its own in Python."""


class _Tools:
    def __init__(self, ctx: Context, lines: SwitchLines) -> None:
        self.ctx = ctx
        self.lines = lines
        self._last: dict[str, Any] = {}

    def look(self, index: int) -> None:
        """Tell which are on, when that has changed."""
        traced = sys.modules.get("tracemalloc")
        value = {
            "profile": _name(sys.getprofile()),
            "trace": _name(sys.gettrace()),
            "tracemalloc": bool(traced is not None and traced.is_tracing()),
            "monitoring": _monitoring(),
        }
        if value != self._last and (self._last or any(value.values())):
            self._last = value
            self.ctx.rec.emit(Setting("tracing", value, self._line(value)))

    def _line(self, value: dict[str, Any]) -> int | None:
        """Where the first of them that is known by its line was made."""
        named = f"{value['profile']} {value['monitoring']}"
        on = {
            "cProfile": "cProfile" in named,
            "torch profiler": _TORCHS in named,
            "tracemalloc": value["tracemalloc"],
        }
        return next((line for what, is_on in on.items() if is_on and (line := self.lines.of(what))), None)


def _name(tool: Any) -> str:
    """``cProfile.Profile`` for an object of a class, ``coverage.pytracer._trace`` for a function; empty for none."""
    if tool is None:
        return ""
    named = tool if hasattr(tool, "__qualname__") else type(tool)
    if named.__qualname__ == "TraceContext" and named.__module__ == "builtins":
        return _TORCHS
    if any(base.__module__ == "_lsprof" for base in type(tool).__mro__):  # ``python -m cProfile``: of ``__main__``
        return "cProfile.Profile"
    return f"{named.__module__}.{named.__qualname__}"


def _monitoring() -> str:
    """Names of tools at ``sys.monitoring`` (Python 3.12): debuggers, coverage and profilers stand there."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        return ""
    tools = ((number, monitoring.get_tool(number)) for number in range(6))
    return ", ".join(name for number, name in tools if name is not None and monitoring.get_events(number))


def install(ctx: Context, lines: SwitchLines) -> None:
    """Look after some of the steps."""
    ctx.rec.on_look.append(_Tools(ctx, lines).look)
