"""An undo stack for replaced attributes: what was put on torch can be taken off again, in reverse order."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["ABSENT", "Undo"]

ABSENT: Any = object()
"""Stands for "the owner itself had no such attribute" (it may have inherited one)."""


class Undo:
    """Remembers replacements and other things to take back."""

    def __init__(self) -> None:
        self._entries: list[Callable[[], str | None]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def replace(self, owner: Any, name: str, new: Any) -> Any:
        """Set ``owner.name`` to ``new`` and return what was found there before (an inherited value, or ABSENT).

        Raises what ``setattr`` raises (``TypeError`` for attributes of C types).
        """
        own = vars(owner).get(name, ABSENT) if hasattr(owner, "__dict__") else getattr(owner, name, ABSENT)
        found = getattr(owner, name, ABSENT)
        setattr(owner, name, new)

        def restore() -> str | None:
            now = vars(owner).get(name, ABSENT) if hasattr(owner, "__dict__") else getattr(owner, name, ABSENT)
            if now is not new:
                return f"{getattr(owner, '__name__', type(owner).__name__)}.{name} was replaced by somebody else"
            if own is ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
            return None

        self._entries.append(restore)
        return found

    def replace_in(self, owner: Any, name: str, new: Any) -> None:
        """Set an attribute of one object (a guarded one in its ``__dict__``), and keep neither that nor what it held
        alive: a script may make a loader and a model for each fold."""
        values = vars(owner)
        held = [values.get(name, ABSENT)]
        met, ours = _loosely(owner, lambda _: held.clear()), _loosely(new)
        if held[0] is ABSENT:
            setattr(owner, name, new)
        else:
            values[name] = new

        def restore() -> str | None:
            there = met()
            if there is None:
                return None
            if held[0] is not ABSENT:
                vars(there)[name] = held[0]
            elif vars(there).get(name) is not ours():
                return f"{type(there).__name__}.{name} was replaced by somebody else"
            else:
                delattr(there, name)
            return None

        self._entries.append(restore)

    def add(self, take_back: Callable[[], Any]) -> None:
        """Register a callable that takes something back; what it returns is ignored."""

        def run() -> None:
            take_back()

        self._entries.append(run)

    def undo_all(self) -> list[str]:
        """Take everything back, newest first. Returns what could not be restored and why, one sentence each."""
        problems = []
        while self._entries:
            entry = self._entries.pop()
            try:
                problem = entry()
            except Exception as err:
                problem = f"{type(err).__name__}: {err}"
            if problem:
                problems.append(problem)
        return problems


def _loosely(thing: Any, when_gone: Callable[[Any], None] | None = None) -> Callable[[], Any]:
    """What gives the thing for as long as it lives; of kinds that cannot be referred to so (numbers), for good."""
    try:
        return weakref.ref(thing, when_gone)
    except TypeError:
        return lambda: thing
