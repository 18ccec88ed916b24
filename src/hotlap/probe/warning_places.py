"""Warnings that come through a replacement name the script's line, as they would without it.

C code warns about the innermost Python frame, and Python code with ``stacklevel=2`` about its caller: where the call
went through a function of ours, both find ours. It is corrected as it is shown: filters have decided by then.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

from hotlap.probe.own_frames import OURS
from hotlap.probe.undo import Undo

__all__ = ["install"]


def install(undo: Undo) -> None:
    """Replace the function of ``warnings`` that shows a message, which C code looks up there at each warning."""
    original: Any = getattr(warnings, "_showwarnmsg", None)
    if original is None:
        return

    def show(message: Any) -> None:
        if str(getattr(message, "filename", "")).startswith(OURS):
            _correct(message)
        original(message)

    undo.replace(warnings, "_showwarnmsg", show)


def _correct(message: Any) -> None:
    """Name the line that called ours: of the frames from here outwards, the first one beyond that which was named."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != message.filename:
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    if frame is not None:
        message.filename, message.lineno, message.line = frame.f_code.co_filename, frame.f_lineno, None
