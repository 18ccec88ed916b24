"""Whether a data set is still the one that has proven itself: the script may change it between epochs, or any time."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from hotlap.lever.contents import Contents
from hotlap.lever.quick_look import QuickLook
from hotlap.lever.sample_codec import pack

__all__ = ["Witness"]

_USES = 64
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
        self._quick = QuickLook(self._values, contents.attributes)

    def stands(self) -> bool:
        """Whether kept samples may be used: quick, for each use."""
        if self._gone:
            return False
        self._uses += 1
        if self._uses % _USES == 0 and perf_counter() - self._looked > _SHARE * self._cost:
            self.look()
        return not self._gone and self._quick.is_untouched()

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
        elif self._missed >= _PATIENCE or self._quick.is_untouched():
            self._gone = True
            if self._tell is not None:
                self._tell()
        self._looked = perf_counter()
        self._cost = self._looked - begun
