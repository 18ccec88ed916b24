"""Letting a dataset prove by being drawn from that an index always gives the same sample."""

from __future__ import annotations

import random
import sys
from typing import Any

from hotlap.lever.purity import impure_reason
from hotlap.lever.sample_codec import same_bits

__all__ = ["deterministic", "is_plain_index"]

_DRAWS = 4


def is_plain_index(index: Any) -> bool:
    """A whole number of Python or numpy, no slice, no tensor, no truth value."""
    return type(index) is int or (hasattr(index, "__index__") and type(index).__module__ == "numpy")


def deterministic(dataset: Any) -> bool:
    """Whether ``dataset`` passes every test: its code, equal samples drawn twice, no random state moved.

    Random states are put back, so that a data set that fails has changed nothing.
    """
    if hasattr(dataset, "__getitems__") or not hasattr(dataset, "__len__") or impure_reason(dataset) is not None:
        return False
    length = len(dataset)
    if length < 1:
        return False
    indices = sorted({0, length - 1, length // 2, length // 3})[:_DRAWS]
    before = _states()
    try:
        pairs = [(dataset[i], dataset[i]) for i in indices]
        still = _states() == before
    finally:
        _put_back(before)
    return still and all(same_bits(a, b) and a is not b for a, b in pairs)


def _states() -> list[Any]:
    import torch

    numpy = sys.modules.get("numpy")
    states: list[Any] = [random.getstate(), torch.get_rng_state().numpy().tobytes()]
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state()
        states.append((name, keys.tobytes(), *rest))
    return states


def _put_back(states: list[Any]) -> None:
    import torch

    random.setstate(states[0])
    torch.set_rng_state(torch.frombuffer(bytearray(states[1]), dtype=torch.uint8))
    numpy = sys.modules.get("numpy")
    if numpy is not None and len(states) > 2:
        name, keys, *rest = states[2]
        numpy.random.set_state((name, numpy.frombuffer(keys, dtype=numpy.uint32), *rest))
