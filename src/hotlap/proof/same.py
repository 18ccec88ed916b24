"""Are two runs the same numbers? Bit for bit, for levers that promise it."""

from __future__ import annotations

import struct
from collections.abc import Sequence

__all__ = ["bits", "first_difference"]


def bits(value: float) -> bytes:
    """The IEEE 754 double behind a float: tells 0.0 from -0.0, and NaN equals itself."""
    return struct.pack("<d", value)


def first_difference(baseline: Sequence[float], candidate: Sequence[float]) -> int | None:
    """First step whose losses differ in any bit, over the steps that both runs have; ``None`` when there is none."""
    for step, (a, b) in enumerate(zip(baseline, candidate, strict=False)):
        if bits(a) != bits(b):
            return step
    return None
