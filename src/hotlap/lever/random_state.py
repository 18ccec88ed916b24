"""The random states of a process: whether something has drawn from them, and putting them back."""

from __future__ import annotations

import random
import sys
from typing import Any

__all__ = ["put_back", "random_states"]


def random_states() -> list[Any]:
    """States of Python's, torch's and (where it is imported) numpy's global generators, comparable with ``==``."""
    import torch

    numpy = sys.modules.get("numpy")
    states: list[Any] = [random.getstate(), torch.get_rng_state().numpy().tobytes()]
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state()
        states.append((name, keys.tobytes(), *rest))
    return states


def put_back(states: list[Any]) -> None:
    """Set the generators to what :func:`random_states` gave."""
    import torch

    random.setstate(states[0])
    torch.set_rng_state(torch.frombuffer(bytearray(states[1]), dtype=torch.uint8))
    numpy = sys.modules.get("numpy")
    if numpy is not None and len(states) > 2:
        name, keys, *rest = states[2]
        numpy.random.set_state((name, numpy.frombuffer(keys, dtype=numpy.uint32), *rest))
