"""A function that gives again what it gave for the same plain arguments, and now and then computes it all the same."""

from __future__ import annotations

import copy
import functools
import sys
import time
import weakref
from collections.abc import Callable, Sized
from typing import Any

from hotlap.lever.pure_functions import PureFunction

__all__ = ["Room", "remembering"]

PLAIN = frozenset((str, bytes, int, float, bool, type(None)))
CHANGEABLE = frozenset((list, dict, set))
AGAIN = 64
"""Results given from memory after which one is computed and compared."""
SMALL = 16
"""Containers up to this length that a function reads are compared with a copy in each call; of longer ones, the length
every now and then. Settings are short, tables are long."""
CHANGES = 16
"""Times that what it reads may change before it is left alone."""
TRIED = 4096
"""Computed results after which a function is left that is quicker than a look, or quick and hardly ever asked again."""
LOOK_S = 1e-6
"""What a look costs: the call, the key, the table, the copy of a short list. Prior."""
ENTRY_BYTES = 200
"""Key and table entry of CPython 3.11, beside the result."""
CHUNK = 1 << 16
"""Bytes that a process takes at once: an entry is some hundred bytes, and counting for all a look at a file."""
_NONE = object()


class Room:
    """Bytes that all functions together may still fill. ``more`` is asked for a chunk where they are used up: a count
    that loader workers share, each with functions of its own."""

    def __init__(self, left: int, more: Callable[[int], bool] | None = None) -> None:
        self._left, self._more = left, more

    def take(self, size: int) -> bool:
        """Whether an entry of so many bytes may be kept; then it counts."""
        if size > self._left and self._more is not None:
            chunk = max(size, CHUNK)
            if self._more(chunk):
                self._left += chunk
            else:
                self._more = None
        if size > self._left:
            return False
        self._left -= size
        return True


class _Reads:
    """What a function read when its first result was kept, and whether that is still so."""

    def __init__(self, pure: PureFunction, own: Any) -> None:
        held = vars(own) if pure.attributes else {}
        self._own = [(name, held.get(name, _NONE)) for name in sorted(pure.attributes)]
        self._names = [(names, name, names.get(name, _NONE)) for names, name in pure.names]
        values = [value for *_, value in (*self._own, *self._names)]
        sized = [v for v in values if isinstance(v, Sized) and not isinstance(v, str | bytes)]
        self._small = [(v, copy.deepcopy(v)) for v in sized if type(v) in CHANGEABLE and len(v) <= SMALL]
        self._lengths = [(v, len(v)) for v in sized if getattr(v, "ndim", 1)]

    @property
    def one(self) -> tuple[str, Any] | None:
        """The attribute, where that is all."""
        return self._own[0] if len(self._own) == 1 and not self._names and not self._small else None

    def same(self, own: Any) -> bool:
        """Looked at in each call."""
        for name, value in self._own:
            if own.__dict__.get(name, _NONE) is not value:
                return False
        for names, name, value in self._names:
            if names.get(name, _NONE) is not value:
                return False
        return all(value == kept for value, kept in self._small) if self._small else True

    def same_lengths(self) -> bool:
        """Looked at every now and then."""
        return all(len(value) == length for value, length in self._lengths)


def remembering(pure: PureFunction, room: Room, used: Callable[[], None], unfit: Callable[[str], None]) -> Any:
    """``pure.function`` with a memory. ``used`` is called when something is given from it, ``unfit`` when the function
    is left alone because it is not what it seemed. A method remembers for one object at a time."""
    memory = _Memory(pure, room, used, unfit)
    if not pure.bound:
        return functools.wraps(pure.function)(lambda *args, **kwargs: memory.call(args, kwargs))
    find, given = memory.table.get, memory.given

    @functools.wraps(pure.function)
    def remembered(own: Any = _NONE, text: Any = _NONE, /, *rest: Any, **kwargs: Any) -> Any:
        """A method of one text that reads one table is what most calls are about: the short way, without a tuple."""
        if (
            memory.short
            and type(text) is str
            and own is memory.owner()
            and own.__dict__.get(memory.name) is memory.value
            and not (rest or kwargs)
        ):
            known = find(text, _NONE)
            if known is not _NONE:
                return given(known, (own, text), text)
        return memory.call((*(v for v in (own, text) if v is not _NONE), *rest), kwargs)

    return remembered


class _Memory:
    """Results of one function by their arguments, and what keeps them right."""

    def __init__(self, pure: PureFunction, room: Room, used: Callable[[], None], unfit: Callable[[str], None]) -> None:
        self._pure, self._room, self._used, self._unfit = pure, room, used, unfit
        self._function, self._skip = pure.function, int(pure.bound)
        self.table: dict[Any, Any] = {}
        self.owner: Callable[[], Any] = lambda: _NONE
        """The object that results are kept of; None when it is gone."""
        self.short, self.name, self.value = False, "", _NONE
        """Whether one attribute is all that the function reads; that, and what it held."""
        self._reads: _Reads | None = None
        self._on = True
        self._hits = self._misses = self._changes = 0
        self._spent_s = 0.0

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Any call at all."""
        skip = self._skip
        if not self._on or kwargs or len(args) <= skip:
            return self._function(*args, **kwargs)
        if skip and args[0] is not self.owner():
            if self.owner() not in (None, _NONE):  # another object, while the first is still there
                return self._function(*args)
            self._anew(args[0])
        elif self._reads is None or not self._reads.same(args[0]):
            self._anew(args[0])
        key = args[skip]
        if type(key) is not str or len(args) != skip + 1:
            kinds = tuple(map(type, args[skip:]))
            if not PLAIN.issuperset(kinds):
                return self._function(*args)
            key = (kinds, args[skip:])  # 1, 1.0 and True are one key to a dict
        known = self.table.get(key, _NONE)
        return self._compute(args, key) if known is _NONE else self.given(known, args, key)

    def given(self, known: Any, args: tuple[Any, ...], key: Any) -> Any:
        """What is known, the caller's own."""
        self._hits += 1
        if self._hits == 1:
            self._used()
        if self._hits % AGAIN == 0:
            return self._again(args, key, known)
        return known.copy() if type(known) in CHANGEABLE else known

    def _compute(self, args: tuple[Any, ...], key: Any) -> Any:
        if self._misses % AGAIN == 0:
            self._look(args[0])
        began = time.perf_counter()
        value = self._function(*args)
        self._spent_s += time.perf_counter() - began
        self._misses += 1
        size = ENTRY_BYTES + sys.getsizeof(value) + sum(map(sys.getsizeof, args[self._skip :]))
        if self._on and _can_be_kept(value, self._pure.new_result) and self._room.take(size):
            self.table[key] = value.copy() if type(value) in CHANGEABLE else value
        return value

    def _again(self, args: tuple[Any, ...], key: Any, known: Any) -> Any:
        """Compute what is known; a difference ends it."""
        self._look(args[0])
        if key not in self.table:
            return self._compute(args, key)
        value = self._function(*args)
        if repr(value) != repr(known):  # True is not 1, -0.0 not 0.0, and NaN is NaN
            self._stop()
            self._unfit(f"{self._function.__name__} gave another result for the same arguments")
        return value

    def _look(self, own: Any) -> None:
        """Whether what it reads is as long as it was, and whether remembering pays."""
        if self._reads is not None and not self._reads.same_lengths():
            self._anew(own)
        mean_s = self._spent_s / max(self._misses, 1)
        rare = self._hits < self._misses // 4 and mean_s < 20 * LOOK_S
        if self._misses >= TRIED and (mean_s < LOOK_S or rare):
            self._stop()

    def _anew(self, own: Any) -> None:
        """Forget what was computed from other tables, or for another object."""
        self.table.clear()
        self._changes += self._reads is not None
        self._reads = _Reads(self._pure, own)
        one = self._reads.one
        self.short = one is not None
        self.name, self.value = one or ("", _NONE)
        if self._skip:
            self.owner = weakref.ref(own)
        if self._changes > CHANGES:
            self._stop()

    def _stop(self) -> None:
        self._on = self.short = False
        self.table.clear()


def _can_be_kept(value: Any, is_new: bool) -> bool:
    """Plain values, and flat containers of them: one that can be changed only where it was made for the caller."""
    kind = type(value)
    if kind in PLAIN:
        return True
    if kind is tuple:
        return all(type(v) in PLAIN for v in value)
    return kind in CHANGEABLE and is_new and all(type(v) in PLAIN for v in (value.values() if kind is dict else value))
