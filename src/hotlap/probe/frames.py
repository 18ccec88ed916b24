"""Numbers for places in source: which frames are the user's own, and the stacks made of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from hotlap.probe.own_frames import OURS
from hotlap.records.installed import is_installed
from hotlap.records.library_files import CALLS_HOOKS, CHECKPOINT, slashes
from hotlap.records.rows import Frame, Stack
from hotlap.records.trainer_calls import LOGS, SAVES

__all__ = ["MAX_FRAMES", "MAX_STACKS", "FrameTable", "is_user_file"]

MAX_FRAMES = 30
"""Frames kept of one stack: every user frame, the innermost :data:`LIBRARY_FRAMES` of libraries, and
:data:`TELLING_FRAMES`."""
MAX_STACKS = 2000
"""Distinct stacks; what comes later is counted under one stack named "other"."""
LIBRARY_FRAMES = 3
TELLING_FRAMES = 2
"""Further ones of libraries: those that :mod:`hotlap.records.trainer_calls` names, and torch's checkpoint. What calls a
function of the user's that is no forward, a hook, is kept besides."""


def _absolute(name: str) -> str:
    try:
        return os.path.abspath(name)
    except OSError:  # the working folder was removed
        return name


def is_user_file(name: str) -> bool:
    """Whether a code object's file name is the user's: no library, nothing generated, not Hotlap."""
    if name.startswith("<"):
        return name.startswith(("<string>", "<stdin>", "<ipython"))
    path = _absolute(name)
    return not path.startswith(OURS) and not is_installed(path)


def _is_telling(function: str) -> bool:
    return SAVES.search(function) is not None or LOGS.search(function) is not None


class FrameTable:
    """Gives each place a number and reports it once, through ``emit``."""

    def __init__(self, emit: Callable[[Any], None]) -> None:
        self._emit = emit
        self.base: CodeType | None = None
        """Stacks end below the frame of this code (a forked worker's stack holds the script that forked it)."""
        # Keyed by id, since hashing a code object reads all of it; keeping the code keeps the id unique.
        self._kinds: dict[int, tuple[int, CodeType]] = {}  # 0 library, 1 user, 2 Hotlap
        self._places: dict[tuple[int, int], int] = {}
        self._ids: dict[tuple[str, int, str], int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._walks: dict[tuple[Any, ...], int] = {}

    def forget(self, emit: Callable[[Any], None]) -> None:
        """Start over (a forked child writes its own file, so all numbers must be reported again)."""
        self.__init__(emit)  # type: ignore[misc]

    def kind(self, code: CodeType) -> int:
        """0: library, 1: the user's, 2: Hotlap's own."""
        found = self._kinds.get(id(code))
        if found is None:
            name = code.co_filename
            found = self._kinds[id(code)] = (2 if _absolute(name).startswith(OURS) else int(is_user_file(name)), code)
        return found[0]

    def number(self, frame: FrameType) -> int:
        """The number of the frame's current line."""
        code = frame.f_code
        place = (id(code), frame.f_lasti)
        found = self._places.get(place)
        if found is None:
            key = (
                _absolute(code.co_filename) if not code.co_filename.startswith("<") else code.co_filename,
                frame.f_lineno or code.co_firstlineno,
                code.co_name,
            )
            found = self._ids.get(key)
            if found is None:
                found = self._ids[key] = len(self._ids) + 1
                self._emit(Frame(found, *key, self.kind(code) == 1))
            self.kind(code)  # keeps the code alive
            self._places[place] = found
        return found

    def user_frame(self, frame: FrameType | None) -> FrameType | None:
        """The innermost user frame at or above ``frame``, or None."""
        while frame is not None and self.kind(frame.f_code) != 1:
            frame = frame.f_back
        return frame

    def user_number(self, depth: int = 1) -> int:
        """The number of the innermost user frame above the caller; 0 when there is none."""
        frame = self.user_frame(sys._getframe(depth + 1))
        return 0 if frame is None else self.number(frame)

    def stack(self, frame: FrameType | None) -> int:
        """The number of a whole stack, given its innermost frame. At most :data:`MAX_STACKS` are told apart."""
        places: list[Any] = []
        step, base = frame, self.base
        while step is not None:
            code = step.f_code
            if code is base:
                break
            places += (id(code), step.f_lasti)
            step = step.f_back
        key = tuple(places)
        found = self._walks.get(key)
        if found is None:
            walk = self._walk(frame)
            found = self._new_stack(walk)
            if len(self._walks) < 4 * MAX_STACKS:
                for each in walk:
                    self.kind(each.f_code)  # keeps the code alive
                self._walks[key] = found
        return found

    def _walk(self, frame: FrameType | None) -> list[FrameType]:
        walk: list[FrameType] = []
        while frame is not None and frame.f_code is not self.base:
            walk.append(frame)
            frame = frame.f_back
        return walk

    def _new_stack(self, walk: list[FrameType]) -> int:
        kept: list[int] = []
        library = telling = 0
        called = ""  # the user's function that this frame called, where it is no forward
        for frame in walk:
            code = frame.f_code
            kind, hook = self.kind(code), bool(called) and slashes(code.co_filename).endswith(CALLS_HOOKS)
            called = code.co_name if kind == 1 and code.co_name != "forward" else ""
            if kind == 0 and library >= LIBRARY_FRAMES and not hook:
                tells = _is_telling(code.co_name) or slashes(code.co_filename).endswith(CHECKPOINT)
                if telling >= TELLING_FRAMES or not tells:
                    continue
                telling += 1
            library += kind == 0
            if kind < 2:
                kept.append(self.number(frame))
            if len(kept) >= MAX_FRAMES:
                break
        key = tuple(reversed(kept))
        found = self._stacks.get(key)
        if found is None:
            if len(self._stacks) >= MAX_STACKS:
                return self._other()
            found = self._stacks[key] = len(self._stacks) + 1
            self._emit(Stack(found, list(key)))
        return found

    def _other(self) -> int:
        found = self._stacks.get(())
        if found is None:
            found = self._stacks[()] = len(self._stacks) + 1
            self._emit(Stack(found, []))
        return found

    def user_stack(self, frame: FrameType | None) -> int:
        """Like :meth:`stack`, beginning at the innermost user frame."""
        return self.stack(self.user_frame(frame))
