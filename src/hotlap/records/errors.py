"""Errors for people: what happened, the value found, where, and what to do next."""

from __future__ import annotations

__all__ = ["EXIT_FAILED", "EXIT_USAGE", "HotlapError", "NotAttached", "RecordError"]

EXIT_FAILED = 1
"""Hotlap could not do what was asked."""
EXIT_USAGE = 2
"""The command line, or a file given on it, is wrong."""


class HotlapError(Exception):
    """A failure that a person can act on.

    ``what`` is one sentence with the value found and where; ``hint`` says what to do next;
    ``exit_code`` is what the command line returns.
    """

    def __init__(self, what: str, hint: str = "", exit_code: int = EXIT_FAILED) -> None:
        super().__init__(f"{what} {hint}".strip())
        self.what = what
        self.hint = hint
        self.exit_code = exit_code


class NotAttached(HotlapError):
    """The door did not open in the user's script: ``why`` says what failed, without a full stop."""

    def __init__(self, why: str) -> None:
        hint = "The text above names what failed; `hotlap doctor` says what this machine lacks."
        super().__init__(f"Hotlap could not attach to the script: {why}.", hint)


class RecordError(HotlapError):
    """A document does not have the shape that its schema promises."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what, hint, EXIT_USAGE)
