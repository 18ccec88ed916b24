"""Compilations that repeat: which function torch.compile compiled again, which guard failed, and what it took."""

from __future__ import annotations

import sys
from typing import Any

from hotlap.probe.context import Context
from hotlap.records.rows import Setting

__all__ = ["Recompiles", "install"]


class Recompiles:
    """Adds up dynamo's own records; it keeps only the latest, so each is counted once, by its id."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._seen: set[str] = set()
        self._places: dict[tuple[str, int, str], dict[str, Any]] = {}

    def look(self, index: int) -> None:
        """Read what was compiled since the last look."""
        dynamo = sys.modules.get("torch._dynamo.utils")
        read = getattr(dynamo, "get_compilation_metrics", None)
        if read is None:
            return
        for metrics in read():
            self._count(metrics)
        for (file, line, name), value in self._places.items():
            place = {"file": file, "first_line": line, "function": name}
            self.ctx.rec.emit(Setting("recompiles", {"step": index, **place, **value}))

    def _count(self, metrics: Any) -> None:
        number = str(getattr(metrics, "compile_id", ""))
        reason = getattr(metrics, "recompile_reason", None)
        if not number or number in self._seen:
            return
        self._seen.add(number)
        if not reason:
            return
        key = (str(metrics.co_filename), int(metrics.co_firstlineno or 0), str(metrics.co_name))
        value = self._places.setdefault(key, {"n": 0, "s": 0.0, "reason": ""})
        value["n"] += 1
        value["s"] += float(getattr(metrics, "entire_frame_compile_time_s", None) or 0.0)
        guard = str(reason).split("\n", 1)[0].partition("#")[0].strip()  # what follows names the line, again
        value["reason"] = guard.partition(": ")[2] or guard


def install(ctx: Context) -> Recompiles:
    """Look when the model is looked at."""
    found = Recompiles(ctx)
    ctx.rec.on_look.append(found.look)
    return found
