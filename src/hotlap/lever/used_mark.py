"""A change that happens in whatever process: an empty file says so, and the training process counts it."""

from __future__ import annotations

import os
from typing import Any

from hotlap.lever.contract import Target

__all__ = ["UsedMark", "watch_mark"]

LOOKS = 400
"""Steps after which the file is no longer looked for: a lever that was not used by then is not used."""


class UsedMark:
    """Calling it makes the file, once per process. Can be sent to a worker."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._told = False

    def __call__(self) -> None:
        if not self._told and os.path.isdir(os.path.dirname(self._path)):
            with open(self._path, "ab"):
                self._told = True


def watch_mark(target: Target, lever_id: str) -> UsedMark:
    """Count one change at the end of the first step that finds the file; what to call where the lever is used."""
    os.makedirs(target.scratch, exist_ok=True)
    path = os.path.join(target.scratch, f"{lever_id}.used")
    left = LOOKS

    def count(optimizer: Any, step: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nonlocal left
        if left > 0:
            left -= 1
            if os.path.exists(path):
                left = 0
                target.changed()
        return step(*args, **kwargs)

    target.around_step(count)
    return UsedMark(path)
