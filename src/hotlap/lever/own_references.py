"""How many references to an object of the script's are ours, so that what only we hold any more can be let go."""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Iterator
from typing import Any

__all__ = ["OwnReferences"]


class OwnReferences:
    """Of what the script calls its own, and what has to be held to be known again: a past fold's data set, say.

    References are counted as CPython counts them. A count that is wrong does no harm: what is let go too early has to
    be met again, what is never let go stays as long as the process. So does what refers to itself in a cycle.
    """

    def __init__(self) -> None:
        self._counts: dict[int, tuple[weakref.ref[Any], int]] = {}

    @contextlib.contextmanager
    def counted(self, thing: Any) -> Iterator[None]:
        """References to ``thing`` that are made within, and stay, are ours."""
        before = sys.getrefcount(thing)
        try:
            yield
        finally:
            made = sys.getrefcount(thing) - before
            known = self._counts.get(id(thing))
            made += known[1] if known is not None and known[0]() is thing else 0
            with contextlib.suppress(TypeError):  # it cannot be referred to weakly: never let go
                self._counts[id(thing)] = weakref.ref(thing), made

    def abandoned(self) -> list[Any]:
        """What nobody else holds. It is counted no more."""
        found: list[Any] = []
        for key, (known, ours) in list(self._counts.items()):
            # the argument is one reference more; of what is gone it is None, which has many
            if sys.getrefcount(known()) <= ours + 1:
                found.append(known())
                del self._counts[key]
            elif known() is None:
                del self._counts[key]
        return found
