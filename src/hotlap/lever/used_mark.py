"""A change that happens in whatever process: an empty file says so, and the training process counts it."""

from __future__ import annotations

import os
from typing import Any

from hotlap.lever.contract import Target

__all__ = ["watch_mark"]

LOOKS = 400
"""Steps after which the file is no longer looked for: a lever that was not used by then is not used."""


def watch_mark(target: Target, lever_id: str) -> str:
    """Count one change at the end of the first step that finds the file; its path, for whoever makes it."""
    os.makedirs(target.scratch, exist_ok=True)
    mark = os.path.join(target.scratch, f"{lever_id}.used")
    left = LOOKS

    def count(optimizer: Any, step: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nonlocal left
        if left > 0:
            left -= 1
            if os.path.exists(mark):
                left = 0
                target.changed()
        return step(*args, **kwargs)

    target.around_step(count)
    return mark
