"""Files that were opened while something was computed: what is kept of it holds as long as they are the same."""

from __future__ import annotations

import builtins
import contextlib
import functools
import io
import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from hotlap.lever.contract import Target
from hotlap.lever.purity import IN_PLACE_OF

__all__ = ["Files", "are_unchanged", "note_opened", "unnoted", "watch_openings", "with_files"]

Files = tuple[tuple[str, str | None], ...]
"""Paths, each with what tells the file from any other that may lie there; None where there was none."""


class _Here(threading.local):
    """What is being computed in this thread, and what was opened for each, the innermost last."""

    def __init__(self) -> None:
        self.opened: list[dict[str, str | None]] = []


_HERE = _Here()


def with_files(compute: Callable[[], Any]) -> tuple[Any, Files]:
    """What ``compute`` gives, and the files that it was made of, as they were when they were opened."""
    _HERE.opened.append({})
    try:
        value = compute()
    finally:
        opened = _HERE.opened.pop()
        for outer in _HERE.opened[-1:]:
            outer.update({**opened, **outer})
    return value, tuple(opened.items())


def unnoted(call: Callable[..., Any], *args: Any) -> Any:
    """What ``call`` gives; what it opens is of no importance to what is being computed."""
    if not _HERE.opened:
        return call(*args)
    _HERE.opened.append({})
    try:
        return call(*args)
    finally:
        _HERE.opened.pop()


def note_opened(path: Any, files: Iterable[tuple[str, str | None]] = ()) -> None:
    """Something opens ``path``, or gives what was kept of ``files``."""
    if not _HERE.opened:
        return
    opened = _HERE.opened[-1]
    for name, stamp in files:
        opened.setdefault(name, stamp)
    if isinstance(path, str | bytes | os.PathLike):
        with contextlib.suppress(OSError, TypeError, ValueError):  # what is wrong with it the opener says
            name = os.path.abspath(os.fsdecode(path))
            opened.setdefault(name, _stamp(name))


def are_unchanged(files: Iterable[tuple[str, str | None]]) -> bool:
    """Whether the same files lie there, as they were."""
    return all(_stamp(name) == stamp for name, stamp in files)


class _Opener:
    """Stands before ``open``, whatever that takes. As a builtin and unlike a function, it is no method of a class that
    has it for an attribute."""

    def __init__(self, real: Callable[..., Any]) -> None:
        functools.update_wrapper(self, real)
        self.__module__ = "builtins"  # where pickle finds it, also where ``real`` is the script's own
        vars(self)[IN_PLACE_OF] = real
        self._real = real

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if _HERE.opened:
            mode = args[1] if len(args) > 1 else kwargs.get("mode", "r")
            if isinstance(mode, str) and ("r" in mode or "+" in mode):
                note_opened(args[0] if args else kwargs.get("file"))
        return self._real(*args, **kwargs)

    def __reduce__(self) -> str:
        return "open"


def watch_openings(target: Target) -> None:
    """Note from now on what Python's own ``open`` opens to be read. Counts no change."""
    real = builtins.open
    opens = _Opener(real)
    places: list[tuple[Any, str]] = [(builtins, "open"), (io, "open"), (sys.modules.get("tarfile"), "bltn_open")]
    for owner, name in places:
        if getattr(owner, name, None) is real:
            target.replace(owner, name, opens)
            target.changed(-1)


def _stamp(name: str) -> str | None:
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return None
    return f"{found.st_dev}|{found.st_ino}|{found.st_mtime_ns}|{found.st_size}"
