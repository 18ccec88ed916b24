"""Errors of work that a lever does later in the script's stead: the script's to see, not the lever's failure."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["as_the_scripts", "is_the_scripts"]

_Error = TypeVar("_Error", bound=BaseException)
_MARK = "_hotlap_the_scripts"


def as_the_scripts(error: _Error, note: str) -> _Error:
    """Mark an error that the script would have met without the lever; ``note`` says what it was about."""
    vars(error)[_MARK] = True
    error.add_note(note)
    return error


def is_the_scripts(error: BaseException) -> bool:
    """Whether the script has to see it."""
    return _MARK in vars(error)
