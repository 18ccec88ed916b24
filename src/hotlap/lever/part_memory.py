"""Results of one function that makes a part of each sample: proved to come again, kept, given, and compared."""

from __future__ import annotations

import copy
import functools
import math
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import Any

from hotlap.lever.constant_parts import Part
from hotlap.lever.contents import Contents
from hotlap.lever.contents_name import name_of
from hotlap.lever.fetching_threads import Epochs, FetchingThreads
from hotlap.lever.kept_results import Comparisons, KeptResults
from hotlap.lever.opened_files import Files, unnoted, with_files
from hotlap.lever.part_purity import Reading
from hotlap.lever.plain_word import plain_word
from hotlap.lever.random_state import put_back, random_states
from hotlap.lever.sample_codec import copied, is_aliased, pack, same_bits, shares
from hotlap.lever.witness import Witness

__all__ = ["Keeping", "PartMemory"]

PROOFS = 4
"""Calls that are made twice and compared, in each process, before one is spared."""
QUICK_S = 2e-4
"""A function that is quicker than this is left alone. Prior: a look at what it reads, and into the cache, takes a tenth
of it."""
LONGEST_LOOK_S, LOOK_PER_SAMPLE_S = 0.1, 1e-6
"""What a function reads is looked at whole before and after each proof, in each worker. A longer look may cost more
than it spares; of a large data set it may take so long for each sample: a dozen looks are a twentieth of what the
quickest function takes in an epoch then."""
WORTH = 2.0
"""Times as long as a copy of its result takes, a function must take to be kept."""
PATIENCE = 3
"""Computed results, as a multiple of the data set's length, after which some must have come again: arguments that are
drawn at random (a place, a scale) do not."""
LEAST_GIVEN_FRAC = 0.1
"""Of all results until then; a share that stays smaller than this saves nothing."""
OPENINGS = 16
"""Calls that may open something, in each process, before it counts as what every call does."""


@dataclass(frozen=True)
class Keeping:
    """What all memories of a lever have in common."""

    results: KeptResults
    used: Callable[[str], None]
    """Called with the name of a function whose results are kept from then on."""
    ended: Callable[[str, str], None]
    """Called with the name of one whose results may not be kept any more, and the reason."""
    unfit: Callable[[str], None]
    """Called with the reason why those of one never were."""
    fetching: FetchingThreads
    longest: Callable[[], int]
    """Samples of the largest data set. Only asked where they are drawn: to ask may open a file."""
    counted: Callable[[Any], AbstractContextManager[None]]
    """References to an object that are made within are ours."""


class PartMemory:
    """Results of one function, for one object, by its plain arguments. Keeps that object, whose id is its name."""

    def __init__(self, part: Part, name: str, keeping: Keeping) -> None:
        self._part, self._function, self._keeping = part, part.function, keeping
        self._skip = int(part.holder is not None)
        self.name = name
        self._on = True
        self._reading = part.reading
        self._inherited = self._contents(math.inf)
        self._epochs = Epochs(keeping.fetching)
        self._begin()

    def _begin(self) -> None:
        """In this process nothing is proved yet: what it reads may be other than when another process began."""
        self._pid = os.getpid()
        self._state = ""
        self._reading = self._part.reading
        self._openings = 0
        self._witness: Witness | None = None
        self._spent_s = self._copied_s = 0.0
        self._proofs = self._computed = 0
        self._is_used = False
        self._comparisons = Comparisons()

    def end(self) -> None:
        """Compute each result from now on."""
        if self._on:
            self._on = False
            self._keeping.results.forget(self.name)

    def _look(self) -> None:
        """An epoch begins."""
        self._comparisons.begin()
        if self._on and self._witness is not None and not self._opens():
            self._keeping.fetching.aside(unnoted, self._witness.look)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of the loader's."""
        if self._pid != os.getpid():
            self._begin()
        if self._epochs.begins():
            self._look()
        given = self._word(args, kwargs) if self._on else None
        if given is None or (self._witness is not None and (self._opens() or not self._witness.stands())):
            return self._function(*args, **kwargs)
        if self._proofs < PROOFS:
            if threading.current_thread() is not threading.main_thread():
                return self._function(*args, **kwargs)
            with self._keeping.counted(self._part.holder):
                return self._prove(given, args, kwargs)
        key, results = f"{self.name}|{self._state}|{given}", self._keeping.results
        found = results.get(key)
        if found is None:
            self._computed += 1
            if self._comparisons.given < LEAST_GIVEN_FRAC * self._computed:
                self._on = self._computed <= PATIENCE * self._keeping.longest()
            return results.through(key, lambda: self._function(*args, **kwargs))
        if not self._comparisons.are_due():
            return found
        value = self._function(*args, **kwargs)
        if not same_bits(value, found):
            self._stop("gave another result for the same arguments")
        return value

    def _prove(self, given: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call it, and once more where that has changed nothing. What is not as it should be ends the keeping, never
        the call."""
        samples = self._keeping.longest()
        states, before, opens = random_states(), self._contents(samples), self._opens()
        spare = functools.partial(self._function, *args[: self._skip], *copy.deepcopy(args[self._skip :]))
        spare = functools.partial(spare, **copy.deepcopy(kwargs))
        value, files = with_files(lambda: self._function(*args, **kwargs))
        now = self._contents(samples)
        if before is None or now is None:
            self._stop("reads more than can be watched")
        elif random_states() != states:
            self._stop("draws at random")
        elif opens:
            self._openings += 1
            if self._openings > OPENINGS:
                self._stop("opens something in every call")
            return value
        elif not (now.same_as(self._witness.before if self._witness else before) and self._word(args, kwargs) == given):
            self._stop("changes what it reads or is given")
        elif pack(value) is None or is_aliased(value):
            self._stop("gives what cannot be kept")
        else:
            self._compare(value, spare)
        if not self._on:
            return value
        self._keep(f"{self.name}|{self._state}|{given}", value, files)
        return value

    def _keep(self, key: str, value: Any, files: Files) -> None:
        """What another process has kept already must be the same."""
        found = self._keeping.results.get(key)
        if found is None:
            self._keeping.results.keep(key, value, files)
        elif not same_bits(found, value):
            self._stop("gave another result for the same arguments")

    def _compare(self, value: Any, again: Callable[[], Any]) -> None:
        """The second call."""
        states = random_states()
        try:
            begun = perf_counter()
            other = again()
            ended = perf_counter()
            copied(value)
            self._spent_s, self._copied_s = self._spent_s + ended - begun, self._copied_s + perf_counter() - ended
            if random_states() != states or not same_bits(value, other):
                self._stop("gave another result for the same arguments, or drew at random")
            elif shares(value, other):
                self._stop("keeps its results itself")
            elif self._witness is None:
                self._begin_to_keep(again)
        except Exception as err:  # the script's own call has succeeded
            self._stop(f"failed when it was called again ({type(err).__name__})")
        if random_states() != states:
            put_back(states)
        self._proofs += 1
        if self._on and self._proofs == PROOFS:
            self._on = self._spent_s >= max(PROOFS * QUICK_S, WORTH * self._copied_s)
            if self._on:
                self._is_used = True
                self._keeping.used(self.name)

    def _begin_to_keep(self, again: Callable[[], Any]) -> None:
        """With all open that it opens: what that is, is looked at like everything else that it reads."""
        self._reading = Reading(self._function, self._part.holder)
        if self._reading.reason is not None:
            self._stop(f"may change: {self._reading.reason}")
            return
        gone = functools.partial(self._stop, "reads what was changed in place, or for long")
        self._witness = Witness(again, self._reading.values, gone)
        # a process that holds what no other can be told to hold has names of its own
        self._state = name_of(self._witness.before, self._inherited) or os.urandom(16).hex()

    def _word(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        return plain_word([list(args[self._skip :]), sorted(kwargs.items())])

    def _opens(self) -> bool:
        """Whether the next call opens something."""
        try:
            return self._reading.opens() and not self._reading.is_open()
        except Exception:  # the script's own question; if it raises in the call as well, the script hears it there
            return True

    def _contents(self, samples: float) -> Contents | None:
        begun = thread_time()  # a process that has to wait for a core looks no longer
        try:
            found = Contents(*self._reading.values())
        except Exception:  # Unwatched, or an attribute of the user's that raises
            return None
        return found if thread_time() - begun < max(LONGEST_LOOK_S, LOOK_PER_SAMPLE_S * samples) else None

    def _stop(self, why: str) -> None:
        why = f"{self._function.__name__} {why}"
        if self._is_used:
            self._keeping.ended(self.name, why)
        else:
            self._on = False
            self._keeping.unfit(why)
