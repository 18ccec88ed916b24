"""Sets and tables of the script's objects by identity: their own ``__eq__`` and ``__hash__`` are never asked."""

from __future__ import annotations

import weakref
from typing import Any

__all__ = ["Identities"]


class Identities:
    """Remembers a value per object, for as long as the object lives."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Any, Any]] = {}

    def get(self, thing: Any) -> Any:
        """The value kept for the object; None when there is none."""
        found = self._found.get(id(thing))
        return found[1] if found is not None and found[0]() is thing else None

    def put(self, thing: Any, value: Any) -> None:
        """Keep a value."""
        self._found[id(thing)] = (weakref.ref(thing), value)

    def is_new(self, thing: Any) -> bool:
        """Whether the object is met for the first time (it is remembered)."""
        if self.get(thing):
            return False
        self.put(thing, True)
        return True
