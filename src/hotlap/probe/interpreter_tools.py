"""Profilers and tracers of the interpreter that are on while the script trains."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from hotlap.probe.context import Context
from hotlap.records.rows import Setting

__all__ = ["install"]


class _Tools:
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.frame: int | None = None
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
            self.ctx.rec.emit(Setting("tracing", value, self.frame if value["tracemalloc"] else None))

    def tracemalloc(self, module: ModuleType) -> None:
        """Remember the line that starts ``tracemalloc``."""
        original = module.start

        @functools.wraps(original)
        def start(*args: Any, **kwargs: Any) -> Any:
            self.frame = self.ctx.rec.frames.user_number() or self.frame
            return original(*args, **kwargs)

        self.ctx.undo.replace(module, "start", start)


def _name(tool: Any) -> str:
    """``cProfile.Profile`` for an object of a class, ``coverage.pytracer._trace`` for a function; empty for none."""
    if tool is None:
        return ""
    named = tool if hasattr(tool, "__qualname__") else type(tool)
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


def install(ctx: Context) -> None:
    """Look after some of the steps."""
    tools = _Tools(ctx)
    ctx.on_import("tracemalloc", tools.tracemalloc)
    ctx.rec.on_look.append(tools.look)
