"""Which phase a stack is in, by the probes' own frames on it: in steps measured in brief nobody keeps an open phase."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

__all__ = ["HookCodes"]

_PHASE = "phase"
"""The variable that holds the phase, in replacements that serve several."""


class HookCodes:
    """Code objects by id. They are kept, so that an id means one of them for ever."""

    def __init__(self) -> None:
        self._codes: dict[int, tuple[int | None, CodeType]] = {}

    def add(self, function: Any, phase: int | None) -> None:
        """While a frame of ``function`` is on the stack, that phase goes on. None: the frame's own ``phase`` says."""
        code = function.__code__
        self._codes[id(code)] = (phase, code)

    def phase(self, frame: FrameType | None) -> int | None:
        """The phase that is open at a frame: as with open phases the outermost counts. None: no phase is."""
        found: int | None = None
        while frame is not None:
            entry = self._codes.get(id(frame.f_code))
            if entry is not None:
                found = frame.f_locals[_PHASE] if entry[0] is None else entry[0]
            frame = frame.f_back
        return found
