"""Keeps Hotlap's own frames out of the tracebacks that the script, or its user, sees.

A replacement that an exception passes through drops its own entry (and those below it that are Hotlap's) from the
exception's traceback and raises it again. It costs nothing until something is raised.
"""

from __future__ import annotations

import os
from types import CodeType

__all__ = ["OURS", "strip"]

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""The folder of this package."""


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(OURS)


def strip(err: BaseException) -> None:
    """Take Hotlap's entries out of ``err.__traceback__``. Call it in an ``except`` that ends with a bare ``raise``."""
    entry = err.__traceback__
    while entry is not None and _is_ours(entry.tb_frame.f_code):
        entry = entry.tb_next
    err.__traceback__ = entry
    while entry is not None:
        below = entry.tb_next
        while below is not None and _is_ours(below.tb_frame.f_code):
            below = below.tb_next
        if below is not entry.tb_next:
            entry.tb_next = below
        entry = below
