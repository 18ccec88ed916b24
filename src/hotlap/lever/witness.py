"""Whether a data set is still the one that has proven itself: the script may change it between epochs, or any time."""

from __future__ import annotations

import operator
from collections.abc import Callable
from time import perf_counter
from typing import Any

from hotlap.lever.contents import Contents, version_of
from hotlap.lever.sample_codec import pack

__all__ = ["Witness"]

_OBJECTS = 8
"""Objects whose attributes are compared at each use: the data set, its parts, their transforms."""
_USES = 64
_COMPARED, _FEW = (list, dict, set, bytearray), 64
"""Containers that are compared at each use, and the most that they may hold."""
_PLAIN = frozenset((int, str, bool, bytes, type(None)))
_PATIENCE = 8
"""Looks in a row that find another: what was replaced for so long is not put back."""
_SHARE = 30.0
"""Looking again takes a thirtieth of the time at most, beside the look at the start of an epoch."""


class Witness:
    """Remembers what ``values`` gives each time, and all that those hold. Raises Unwatched where that is too much.
    ``again`` gives one sample, or part of it, as the script's own code does.

    What is replaced (``data.size = 224``) is seen at once, and is trusted again when it is put back soon. What is
    changed in place is seen at the next look; since samples may have been kept in between, that is for good, and
    ``gone`` is called.
    """

    def __init__(
        self, again: Callable[[], Any], values: Callable[[], list[Any]], gone: Callable[[], None] | None = None
    ) -> None:
        self._values = values
        self._again = again
        self._tell = gone
        self._gone = False
        self._uses = self._missed = 0
        self._sample = pack(again())
        begun = perf_counter()
        self.before = Contents(*values())
        """What it held when it began to be trusted."""
        self._remember(self.before)
        self._looked = perf_counter()
        self._cost = self._looked - begun

    def _remember(self, contents: Contents) -> None:
        self._own = self._values()
        self._held = [(found, list(found.values())) for found in contents.attributes[:_OBJECTS]]
        values = [*self._own, *(value for _, held in self._held for value in held)]
        self._small = [(value, copy) for value in values if (copy := _copy_of_small(value)) is not None]
        versions = [(value, version_of(value)) for value in values]
        self._versions = [(value, version) for value, version in versions if version is not None]

    def _is_untouched(self) -> bool:
        if not all(map(operator.is_, self._values(), self._own)):
            return False
        for now, held in self._held:
            if len(now) != len(held) or not all(map(operator.is_, now.values(), held)):
                return False
        if any(value != copy for value, copy in self._small):
            return False
        return all(tensor._version == version for tensor, version in self._versions)

    def stands(self) -> bool:
        """Whether kept samples may be used: quick, for each use."""
        if self._gone:
            return False
        self._uses += 1
        if self._uses % _USES == 0 and perf_counter() - self._looked > _SHARE * self._cost:
            self.look()
        return not self._gone and self._is_untouched()

    def look(self) -> None:
        """At the start of an epoch: compare what it holds, and one sample drawn anew."""
        if self._gone:
            return
        begun = perf_counter()
        try:
            now = Contents(*self._values())
            same = now.same_as(self.before) and pack(self._again()) == self._sample
        except Exception:  # too much, or broken: what is wrong the script hears at its own draw
            same = False
        self._missed = 0 if same else self._missed + 1
        if same:
            self._remember(now)
        elif self._missed >= _PATIENCE or self._is_untouched():
            self._gone = True
            if self._tell is not None:
                self._tell()
        self._looked = perf_counter()
        self._cost = self._looked - begun


def _copy_of_small(value: Any) -> Any:
    """Of a container of a few plain values, which is compared at each use; None for anything else."""
    kind = type(value)
    if kind not in _COMPARED or len(value) > _FEW:
        return None
    parts = [*value, *value.values()] if kind is dict else value
    return kind(value) if all(type(part) in _PLAIN for part in parts) else None
