"""Checkpoints: ``torch.save`` and safetensors' ``save_file``."""

from __future__ import annotations

import functools
import os
import sys
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.own_frames import strip
from hotlap.probe.recorder import CHECKPOINT, VALIDATION
from hotlap.probe.validation import MAX_EVENTS, Validations
from hotlap.records.rows import Event

__all__ = ["install"]

_stat = os.stat
"""As it is before any lever: under checkpoint-async, whoever looks for the file waits for it, and we must not."""


def install(ctx: Context, validations: Validations) -> None:
    """Replace the savers. Saving during a validation ends it: the metrics are known by then."""
    rec, points = ctx.rec, ctx.points
    events = 0

    def told(begun: int, path: Any) -> None:
        try:
            stack = rec.frames.user_stack(sys._getframe(2))
            rec.emit(Event("checkpoint", begun, rec.clock() - begun, rec.step_index, stack, _size(path)))
        except Exception as err:
            ctx.failed("checkpoint", err)

    def watch(owner: Any, name: str, hooked: bool, path_at: int) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def save(*args: Any, **kwargs: Any) -> Any:
            nonlocal events
            if get_ident() != rec.thread:
                return original(*args, **kwargs)
            if rec.cur == VALIDATION:
                validations.end_now()
            opened = rec.enter(CHECKPOINT)
            begun = rec.clock()
            call = original
            if hooked:
                for wrapper in points.around_save:
                    call = functools.partial(_wrapped, wrapper, call)
            try:
                return call(*args, **kwargs)
            except BaseException as err:
                strip(err)
                raise
            finally:
                if opened and rec.cur == CHECKPOINT:
                    rec.leave()
                events += 1
                if events <= MAX_EVENTS and rec.started:
                    told(begun, args[path_at] if len(args) > path_at else kwargs.get("f", kwargs.get("filename")))

        ctx.undo.replace(owner, name, save)

    watch(ctx.torch, "save", True, 1)
    ctx.undo.replace(ctx.torch.serialization, "save", ctx.torch.save)
    ctx.on_import("safetensors.torch", lambda module: watch(module, "save_file", False, 1))


def _wrapped(wrapper: Any, call: Any, *args: Any, **kwargs: Any) -> Any:
    return wrapper(call, args, kwargs)


def _size(path: Any) -> dict[str, float]:
    if not isinstance(path, str | os.PathLike):
        return {}
    try:
        return {"file_bytes": float(_stat(path).st_size)}
    except OSError:
        return {}  # not saved after all (skipped, or given to a thread)
