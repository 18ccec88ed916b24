"""The user's line that made an object: where to pass its constructor another argument."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.own_frames import strip

__all__ = ["MadeAt"]


class MadeAt:
    """Numbers of frames, by the object of class ``owner`` (or of one derived from it) that was made there."""

    def __init__(self, ctx: Context, owner: Any) -> None:
        self._frames = ctx.rec.frames
        self._made: dict[int, tuple[weakref.ref[Any], int]] = {}
        """By id: a class of the script's may compare its objects in its own way, or not let them be hashed."""
        ctx.undo.replace(owner, "__init__", self._noting(owner.__init__))

    def of(self, made: Any) -> int | None:
        """None of what was made before Hotlap came, or copied."""
        return self._made[id(made)][1] or None if id(made) in self._made else None

    def _noting(self, original: Any) -> Any:
        @functools.wraps(original)
        def __init__(made: Any, *args: Any, **kwargs: Any) -> None:
            try:
                original(made, *args, **kwargs)
            except BaseException as err:
                strip(err)
                raise
            key = id(made)
            gone = weakref.ref(made, lambda _: self._made.pop(key, None))  # before another object gets its id
            self._made[key] = gone, self._frames.user_number()

        return __init__
