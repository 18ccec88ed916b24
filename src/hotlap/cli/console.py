"""The terminal that commands write to: stderr while the script owns stdout."""

from __future__ import annotations

import sys

from rich.console import Console

__all__ = ["console"]


def console(stderr: bool = True) -> Console:
    """A console that writes plain text when it is not a terminal. Text is shown as it is: much of it is the user's."""
    file = sys.stderr if stderr else sys.stdout
    return Console(file=file, markup=False, emoji=False, highlight=False, soft_wrap=False)
