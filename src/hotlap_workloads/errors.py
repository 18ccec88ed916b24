"""Errors for people: what was found, where, and what to do next."""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = [
    *("EXIT_FAILED", "EXIT_INTERRUPTED", "EXIT_NAN", "EXIT_TERMINATED", "EXIT_USAGE"),
    *("DataError", "SettingsError", "WorkloadError", "ended", "first_line"),
]

EXIT_FAILED = 1
"""The training could not go on."""
EXIT_USAGE = 2
"""The command line, a setting or a configuration file is wrong."""
EXIT_NAN = 3
"""The loss was not a number."""
EXIT_INTERRUPTED = 130
"""Stopped by Ctrl-C (128 + 2)."""
EXIT_TERMINATED = 143
"""Asked to stop by SIGTERM (128 + 15): a checkpoint was written, the same command goes on from it."""


class WorkloadError(Exception):
    """A failure that a person can act on; ``exit_code`` is what the program returns."""

    def __init__(self, what: str, hint: str = "", exit_code: int = EXIT_FAILED) -> None:
        super().__init__(f"{what} {hint}".strip())
        self.exit_code = exit_code


class SettingsError(WorkloadError):
    """A setting that does not exist, has the wrong type, or that this machine cannot do."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what, hint, EXIT_USAGE)


class DataError(WorkloadError):
    """A file of the data set that is missing, cut short or unreadable. ``path`` names it.

    A loading process's error is made again by torch in the training's process, from one text alone: its traceback.
    """

    def __init__(self, path: object, what: str = "", hint: str = "") -> None:
        if not what:
            path, _, what = str(path).strip().splitlines()[-1].rpartition("DataError: ")[2].partition(": ")
        super().__init__(f"{path}: {what}", hint)
        self.path = str(path)
        self.what = what


def ended(work: Callable[[], int]) -> int:
    """The exit code of a program: what its work returns, or that of what stopped it, which is told in a line."""
    try:
        return work()
    except WorkloadError as err:
        print(err, file=sys.stderr)
        return err.exit_code
    except KeyboardInterrupt:
        print("Stopped by Ctrl-C.", file=sys.stderr)
        return EXIT_INTERRUPTED


def first_line(err: BaseException) -> str:
    """What an error of others says, at most 120 characters of it; some say nothing."""
    return (str(err).strip().splitlines() or ["no reason given"])[0][:120]
