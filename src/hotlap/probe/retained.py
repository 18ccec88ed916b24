"""What the script keeps from step to step: growing collections of tensors, and sums that drag their graphs along.

After some steps the variables of the frames that train are looked at, one level deep: how long a list is and whether
its last value still has a graph; how many additions a running sum goes through. Nothing is held, nothing is changed,
and no code of the script runs (types are asked, not objects, which may answer as they like).
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

from hotlap.probe.context import Context
from hotlap.records.rows import Setting

__all__ = ["install"]

FRAMES = 6
"""User frames looked at, innermost first."""
NAMES = 400
"""Variables looked at in one frame."""
SHORTEST = 4
"""Collections with fewer values keep nothing worth telling."""
LONGEST_CHAIN = 2000
_OPTIMIZED = 0x1
_SEES_LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec", "f_locals"})
"""A function that uses one of these may hold the very dict that a look at its variables refreshes."""

Found = tuple[str, str, int]
"""Name, kind (``graph``, ``tensor``, ``sum``), length."""


class _Retained:
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.tensor = ctx.torch.Tensor

    def look(self, index: int) -> None:
        """Tell what the user's frames on the stack keep."""
        if sys.gettrace() is not None or sys.getprofile() is not None:
            return
        frames, seen = self.ctx.rec.frames, 0
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and seen < FRAMES:
            if frames.kind(frame.f_code) == 1:
                seen += 1
                with self.ctx.torch._C.DisableTorchFunction():
                    found = self._in_frame(frame)
                if found:
                    self.ctx.rec.emit(Setting("retained", {"step": index, "found": found}, frames.number(frame)))
            frame = frame.f_back

    def _in_frame(self, frame: FrameType) -> list[Found]:
        code = frame.f_code
        own = bool(code.co_flags & _OPTIMIZED)
        if own and _SEES_LOCALS & set(code.co_names):
            return []
        names = frame.f_locals
        try:
            return self._in_names(dict(names), str(frame.f_globals.get("__name__")))
        finally:
            if own and sys.version_info < (3, 13):
                names.clear()  # the snapshot that Python keeps with the frame would hold a step's tensors
            del names

    def _in_names(self, names: dict[str, Any], module: str) -> list[Found]:
        found: list[Found] = []
        for name, value in list(names.items())[:NAMES]:
            if isinstance(name, str) and not name.startswith("__"):
                found += self._told(name, value)
                if type(value).__module__ == module or name == "self":
                    for inner, held in _attributes(value):
                        found += self._told(f"{name}.{inner}", held)
        return found

    def _told(self, name: str, value: Any) -> list[Found]:
        if type(value) in (list, dict, deque) and len(value) >= SHORTEST:
            last = next(reversed(value.values())) if type(value) is dict else value[-1]
            kind = self._kind(last)
            return [(name, kind, len(value))] if kind else []
        if issubclass(type(value), self.tensor) and value.grad_fn is not None:
            length = _chain(value.grad_fn)
            return [(name, "sum", length)] if length >= SHORTEST else []
        return []

    def _kind(self, value: Any) -> str:
        if issubclass(type(value), self.tensor):
            return "graph" if value.grad_fn is not None else "tensor"
        if type(value) in (tuple, list, dict) and len(value) <= 16:
            kinds = {self._kind(v) for v in (value.values() if type(value) is dict else value) if v is not value}
            return "graph" if "graph" in kinds else "tensor" if "tensor" in kinds else ""
        return ""


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:  # slots, a built-in type
        return
    if type(held) is dict and not issubclass(type(value), type):
        yield from list(held.items())[:NAMES]


def _chain(node: Any) -> int:
    """Additions that a tensor's graph goes through in a row: a running sum has one for each step."""
    length = 0
    while node is not None and length < LONGEST_CHAIN and node.name() == "AddBackward0":
        length += 1
        before = [n for n, _ in node.next_functions if n is not None]
        node = next((n for n in before if n.name() == "AddBackward0"), None)
    return length


def install(ctx: Context) -> None:
    """Look after the steps at which the switches are looked at too."""
    ctx.rec.on_look.append(_Retained(ctx).look)
