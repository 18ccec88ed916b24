"""The line that made each optimizer: where to pass it a keyword."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.own_frames import strip

__all__ = ["OptimizerLines", "install"]


class OptimizerLines:
    """Numbers of frames, by the optimizer that was made there."""

    def __init__(self, ctx: Context) -> None:
        self._frames = ctx.rec.frames
        self._lines: dict[int, tuple[weakref.ref[Any], int]] = {}

    def of(self, optimizer: Any) -> int | None:
        """The user's line that made it; None of one that was made before Hotlap came, or copied."""
        made, line = self._lines.get(id(optimizer), (None, 0))
        return line or None if made is not None and made() is optimizer else None

    def noting(self, original: Any) -> Any:
        """``Optimizer.__init__`` that notes its caller's line."""

        @functools.wraps(original)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            try:
                original(optimizer, *args, **kwargs)
            except BaseException as err:
                strip(err)
                raise
            self._lines[id(optimizer)] = weakref.ref(optimizer), self._frames.user_number()

        return __init__


def install(ctx: Context) -> OptimizerLines:
    """Replace the constructor that all optimizers of torch call."""
    lines, base = OptimizerLines(ctx), ctx.torch.optim.Optimizer
    ctx.undo.replace(base, "__init__", lines.noting(base.__init__))
    return lines
