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
"""What a look costs: the call, the key, the table, the copy of a short list (0.5 to 1 us on a core of 2 GHz)."""
ENTRY_BYTES = 200
"""Key and table entry of CPython 3.11, beside the result."""
_NONE = object()


class Room:
    """Bytes that all functions together may still fill."""

    def __init__(self, max_bytes: int) -> None:
        self.left = max_bytes


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
    function, skip, new_result = pure.function, int(pure.bound), pure.new_result
    table: dict[Any, Any] = {}
    find = table.get
    on, hits, misses, changes, spent_s = True, 0, 0, 0, 0.0
    owner: Callable[[], Any] = lambda: _NONE  # noqa: E731  # until the first call
    reads: _Reads | None = None
    one: tuple[str, Any] | None = None
    name, value = "", _NONE

    def stop() -> None:
        nonlocal on
        on = False
        table.clear()

    def anew(own: Any) -> None:
        """Forget what was computed from other tables, or for another object."""
        nonlocal owner, reads, changes, one, name, value
        table.clear()
        changes += reads is not None
        reads = _Reads(pure, own)
        one = reads.one
        name, value = one or ("", _NONE)
        if skip:
            owner = weakref.ref(own)
        if changes > CHANGES:
            stop()

    def look(own: Any) -> None:
        """Whether what it reads is as long as it was, and whether remembering pays."""
        if reads is not None and not reads.same_lengths():
            anew(own)
        mean_s = spent_s / max(misses, 1)
        rare = hits < misses // 4 and mean_s < 20 * LOOK_S
        if misses >= TRIED and (mean_s < LOOK_S or rare):
            stop()

    def compute(args: tuple[Any, ...], key: Any) -> Any:
        nonlocal misses, spent_s
        if misses % AGAIN == 0:
            look(args[0])
        began = time.perf_counter()
        value = function(*args)
        spent_s += time.perf_counter() - began
        misses += 1
        size = ENTRY_BYTES + sys.getsizeof(value) + sum(map(sys.getsizeof, args[skip:]))
        if on and size <= room.left and _can_be_kept(value, new_result):
            room.left -= size
            table[key] = value.copy() if type(value) in CHANGEABLE else value
        return value

    def again(args: tuple[Any, ...], key: Any, known: Any) -> Any:
        """Compute what is known; a difference ends it."""
        look(args[0])
        if find(key, _NONE) is _NONE:
            return compute(args, key)
        value = function(*args)
        if repr(value) != repr(known):  # True is not 1, -0.0 not 0.0, and NaN is NaN
            stop()
            unfit(f"{function.__name__} gave another result for the same arguments")
        return value

    def given(known: Any, args: tuple[Any, ...], key: Any) -> Any:
        nonlocal hits
        hits += 1
        if hits == 1:
            used()
        if hits % AGAIN == 0:
            return again(args, key, known)
        return known.copy() if type(known) in CHANGEABLE else known

    def any_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not on or kwargs or len(args) <= skip:
            return function(*args, **kwargs)
        if skip and args[0] is not owner():
            if owner() not in (None, _NONE):  # another object, while the first is still there
                return function(*args)
            anew(args[0])
        elif reads is None or not reads.same(args[0]):
            anew(args[0])
        key = args[skip]
        if type(key) is not str or len(args) != skip + 1:
            kinds = tuple(map(type, args[skip:]))
            if not PLAIN.issuperset(kinds):
                return function(*args)
            key = (kinds, args[skip:])  # 1, 1.0 and True are one key to a dict
        known = find(key, _NONE)
        return compute(args, key) if known is _NONE else given(known, args, key)

    if not skip:
        return functools.wraps(function)(lambda *args, **kwargs: any_call(args, kwargs))

    @functools.wraps(function)
    def remembered(own: Any = _NONE, text: Any = _NONE, /, *rest: Any, **kwargs: Any) -> Any:
        """A method of one text that reads one table is what most calls are about: the short way, without a tuple."""
        if one and type(text) is str and own is owner() and own.__dict__.get(name) is value and not rest and not kwargs:
            known = find(text, _NONE)
            if known is not _NONE:
                return given(known, (own, text), text)
        return any_call((*(v for v in (own, text) if v is not _NONE), *rest), kwargs)

    return remembered


def _can_be_kept(value: Any, is_new: bool) -> bool:
    """Plain values, and flat containers of them: one that can be changed only where it was made for the caller."""
    kind = type(value)
    if kind in PLAIN:
        return True
    if kind is tuple:
        return all(type(v) in PLAIN for v in value)
    return kind in CHANGEABLE and is_new and all(type(v) in PLAIN for v in (value.values() if kind is dict else value))
