"""Whether something that the script holds was touched since: as quick as a look at each use has to be."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from itertools import islice
from types import ModuleType
from typing import Any

from hotlap.lever.contents import version_of
from hotlap.lever.watched_kinds import attributes_of

__all__ = ["OBJECTS", "QuickLook", "attributes_within"]

OBJECTS = 8
"""Objects whose attributes are compared: the data set, its parts, their transforms."""
_COMPARED, _FEW = (list, dict, set, bytearray), 64
"""Containers that are compared, and the most that they may hold."""
_PLAIN = frozenset((int, str, bool, bytes, type(None)))


class QuickLook:
    """At what ``values`` gives, and at the ``attributes`` (``__dict__`` of objects) of what those hold.

    Seen are other objects in their places, changes of containers of a few plain values, and of tensors in place.
    """

    def __init__(self, values: Callable[[], list[Any]], attributes: list[dict[str, Any]]) -> None:
        self._values = values
        self._own = values()
        self._held = [(found, list(found.values())) for found in attributes[:OBJECTS]]
        all_values = [*self._own, *(value for _, held in self._held for value in held)]
        self._small = [(value, copy) for value in all_values if (copy := _copy_of_small(value)) is not None]
        versions = [(value, version_of(value)) for value in all_values]
        self._versions = [(value, version) for value, version in versions if version is not None]

    def is_untouched(self) -> bool:
        """Whether all is as it was."""
        if not all(map(operator.is_, self._values(), self._own)):
            return False
        for now, held in self._held:
            if len(now) != len(held) or not all(map(operator.is_, now.values(), held)):
                return False
        if any(value != copy for value, copy in self._small):
            return False
        return all(tensor._version == version for tensor, version in self._versions)


def attributes_within(*things: Any) -> list[dict[str, Any]]:
    """Of the first objects among them and in them, the outermost first."""
    found: list[dict[str, Any]] = []
    waiting = deque(things)
    while waiting and len(found) < OBJECTS:
        thing = waiting.popleft()
        if isinstance(thing, list | tuple):
            waiting.extend(islice(thing, OBJECTS))
            continue
        own = {} if isinstance(thing, type | ModuleType) else attributes_of(thing)
        if own and not any(own is known for known in found):
            found.append(own)
            waiting.extend(own.values())
    return found


def _copy_of_small(value: Any) -> Any:
    """Of a container of a few plain values, which is compared; None for anything else."""
    kind = type(value)
    if kind not in _COMPARED or len(value) > _FEW:
        return None
    parts = [*value, *value.values()] if kind is dict else value
    return kind(value) if all(type(part) in _PLAIN for part in parts) else None
