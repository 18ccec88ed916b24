"""Letting a dataset prove by being drawn from that an index always gives the same sample."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from types import FunctionType
from typing import Any

from hotlap.lever.contents import Unwatched
from hotlap.lever.part_purity import Reading
from hotlap.lever.purity import IN_PLACE_OF
from hotlap.lever.random_state import put_back, random_states
from hotlap.lever.sample_codec import same_bits
from hotlap.lever.sample_purity import SampleReading
from hotlap.lever.witness import Witness

__all__ = ["deterministic", "is_plain_index", "proven"]

_DRAWS = 4


def is_plain_index(index: Any) -> bool:
    """A whole number of Python or numpy, no slice, no array, no truth value."""
    return isinstance(index, numbers.Integral) and not isinstance(index, bool)


def deterministic(dataset: Any) -> bool:
    """Whether ``dataset`` passes every test: its code, equal samples drawn twice, no random state moved. What opens
    something at its first use fails: drawn from here, it would be open in all workers that are forked later.

    Random states are put back, so that a data set that fails has changed nothing.
    """
    return _read_and_drawn(dataset) is not None


def _read_and_drawn(dataset: Any) -> SampleReading | None:
    if hasattr(dataset, "__getitems__") or not hasattr(dataset, "__len__"):
        return None
    if any(_stores(dataset, name) for name in ("__getitem__", "__len__")):
        return None
    reading = SampleReading(dataset)
    if reading.reason is not None or reading.opens():
        return None
    length = len(dataset)
    if length < 1:
        return None
    indices = sorted({0, length - 1, length // 2, length // 3})[:_DRAWS]
    before = random_states()
    try:
        pairs = [(dataset[i], dataset[i]) for i in indices]
        still = random_states() == before
    finally:
        put_back(before)
    return reading if still and all(same_bits(a, b) and a is not b for a, b in pairs) else None


def _stores(dataset: Any, name: str) -> bool:
    method = getattr(type(dataset), name, None)
    method = getattr(method, IN_PLACE_OF, method)
    if not isinstance(method, FunctionType):
        return False
    reading = Reading(method, dataset, stores_alone=True)
    return reading.reason is not None or reading.opens()


def proven(dataset: Any, draw: Callable[[int], Any], gone: Callable[[], None] | None = None) -> Witness | None:
    """Who tells from now on whether ``dataset``, and what its code reads besides, is as it was, and calls ``gone`` when
    it is not, for good; None where it does not pass, or cannot be watched.

    ``draw`` gives a sample as the script's own code does.
    """
    reading = _read_and_drawn(dataset)
    if reading is None:
        return None
    try:
        return Witness(functools.partial(draw, len(dataset) // 2), lambda: [dataset, *reading.values()], gone)
    except Unwatched:
        return None
