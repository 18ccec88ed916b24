"""A function that makes a part of each sample, with a cache before it once it has proved to give the same again."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from pathlib import PurePath
from time import perf_counter
from typing import Any

from hotlap.lever.constant_parts import Part, attributes_read, constant_parts
from hotlap.lever.contents import Unwatched
from hotlap.lever.contract import Target
from hotlap.lever.fetching_threads import FetchingThreads
from hotlap.lever.file_cache import FileCache
from hotlap.lever.purity import IN_PLACE_OF, impure_part_reason
from hotlap.lever.random_state import put_back, random_states
from hotlap.lever.readers import kept, through
from hotlap.lever.sample_codec import pack, same_bits, shares
from hotlap.lever.witness import Witness

__all__ = ["KeptParts"]

PROOFS = 4
"""Calls that are made twice and compared, in each process, before one is spared."""
AGAIN = 64
"""Results given from the cache after which one is computed all the same and compared."""
QUICK_S = 5e-5
"""A function that is quicker than this is left alone. Prior: a look into the cache takes a tenth of it."""
PATIENCE = 3
"""Computed results, as a multiple of the data set's length, after which some must have come again: arguments that are
drawn at random (a place, a scale) do not."""
LEAST_GIVEN_FRAC = 0.1
"""Of all results until then; a share that stays smaller than this saves nothing."""
OBJECTS = 16
"""Objects of one class whose results are kept: others are made in passing."""
LONGEST_TEXT, MOST_VALUES = 1024, 16
"""Of arguments: characters, and values in a list."""
_PLAIN = frozenset((int, float, str, bool, type(None)))


class KeptParts:
    """The stand-ins of all parts. ``used`` is called when a result is given from the cache."""

    def __init__(self, target: Target, cache: FileCache, fetching: FetchingThreads, used: Callable[[], None]) -> None:
        self.cache, self.fetching, self.used = cache, fetching, used
        self.unfit = target.unfit
        self.dataset_len = 0
        """Length of the longest training data set."""
        self._target = target
        self._standing: set[Any] = set()

    def keep(self, dataset: Any) -> bool:
        """Put a stand-in before each part of the samples of ``dataset``. Whether there are any. Counts no change."""
        self.dataset_len = max(self.dataset_len, len(dataset) if hasattr(dataset, "__len__") else 0)
        found = constant_parts(dataset)
        for part in found:
            if part.function not in self._standing:
                self._standing.add(part.function)
                self._target.replace(part.owner, part.function.__name__, _stand_in(part, self))
                self._target.changed(-1)
        if found:
            self.fetching.watch(self._target)
        return bool(found)


def _stand_in(part: Part, keeping: KeptParts) -> Callable[..., Any]:
    """What takes the place of ``part.function``: for loaders alone, and for each of its objects by itself."""
    function, here = part.function, keeping.fetching.here
    known: dict[int, tuple[Any, _Memory | None]] = {}  # the object beside it keeps its id from another

    @functools.wraps(function)
    def kept_part(*args: Any, **kwargs: Any) -> Any:
        if not here() or (part.bound and not args):
            return function(*args, **kwargs)
        holder = args[0] if part.bound else None
        if id(holder) not in known and len(known) < OBJECTS:
            known[id(holder)] = holder, _memory(part, holder, len(known), keeping)
        memory = known.get(id(holder), (None, None))[1]
        return function(*args, **kwargs) if memory is None else memory.call(args, kwargs)

    vars(kept_part)[IN_PLACE_OF] = function
    return kept_part


def _memory(part: Part, holder: Any, number: int, keeping: KeptParts) -> _Memory | None:
    """None for an object whose results may vary, though those of another of its class do not."""
    reads = attributes_read(part.function, holder)
    if impure_part_reason(part.function, holder, reads) is not None:
        return None
    return _Memory(part, f"{part.function.__module__}.{part.function.__qualname__}|{number}", reads, keeping)


class _Memory:
    """Results of one function, for one object, by its plain arguments."""

    def __init__(self, part: Part, name: str, reads: list[str], keeping: KeptParts) -> None:
        self._function, self._name, self._reads, self._keeping = part.function, name, reads, keeping
        self._skip = int(part.bound)
        self._on = True
        self._witness: Witness | None = None
        self._spent_s = 0.0
        self._proofs = self._given = self._computed = 0

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of the loader's."""
        key = self._key(args, kwargs) if self._on else None
        if key is None:
            return self._function(*args, **kwargs)
        if self._proofs < PROOFS:
            return self._prove(key, args, kwargs)
        if self._witness is None or not self._witness.stands():
            return self._function(*args, **kwargs)
        found = kept(self._keeping.cache, key)
        if found is None:
            self._computed += 1
            late = self._computed > PATIENCE * self._keeping.dataset_len
            self._on = not (late and self._given < LEAST_GIVEN_FRAC * self._computed)
            return through(self._keeping.cache, key, lambda: self._function(*args, **kwargs))
        self._given += 1
        if self._given % AGAIN:
            self._keeping.used()
            return found
        value = self._function(*args, **kwargs)
        if not same_bits(value, found):
            self._stop("gave another result for the same arguments")
        return value

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """None for arguments that are no plain values."""
        given = _word([*args[self._skip :], *sorted(kwargs.items())])
        return None if given is None else f"{self._name}|{given}"

    def _prove(self, key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call it twice: whatever is not as it should be ends the keeping, never the call."""
        holder = args[: self._skip]
        spare = copy.deepcopy((args[self._skip :], kwargs))  # plain values
        before = random_states()
        begun = perf_counter()
        value = self._function(*args, **kwargs)
        self._spent_s += perf_counter() - begun
        after = random_states()
        try:
            again = self._function(*holder, *spare[0], **spare[1])
            if self._key(args, kwargs) != key:
                self._stop("changes what it is given")
            elif pack(value) is None or shares(value, again):
                self._on = False  # of a kind that is not kept, or it keeps its results itself
            elif not (same_bits(value, again) and before == after == random_states()):
                self._stop("gave another result for the same arguments, or drew at random")
            elif self._witness is None:
                draw = functools.partial(self._function, *holder, *spare[0], **spare[1])
                self._witness = Witness(holder[0] if holder else None, draw, self._reads)
        except Unwatched:
            self._stop("reads more than can be watched")
        except Exception as err:  # the script's own call has succeeded
            self._stop(f"failed when it was called again ({type(err).__name__})")
        if random_states() != after:
            put_back(after)
        if not self._on:
            return value
        self._proofs += 1
        self._on = self._proofs < PROOFS or self._spent_s >= PROOFS * QUICK_S
        return through(self._keeping.cache, key, lambda: value) if self._on else value

    def _stop(self, why: str) -> None:
        self._on = False
        self._keeping.unfit(f"{self._function.__name__} {why}")


def _word(value: Any) -> str | None:
    """A plain value, or a short list or tuple of them, as text that no other has; None for anything else."""
    kind = type(value)
    if kind is tuple or kind is list:
        words = [_word(part) for part in value] if len(value) <= MOST_VALUES else [None]
        return None if None in words else f"{kind.__name__}({', '.join(map(str, words))})"
    if isinstance(value, PurePath):
        return f"{kind.__name__} {str(value)!r}"
    is_number = kind.__module__ == "numpy" and hasattr(value, "item") and value.ndim == 0
    plain = value.item() if is_number else value
    if type(plain) not in _PLAIN or (type(plain) is str and len(plain) > LONGEST_TEXT):
        return None
    return f"{kind.__name__} {plain!r}"
