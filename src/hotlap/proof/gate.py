"""Whether a slowdown is more than is allowed, and how small a one this measurement could see."""

from __future__ import annotations

import math

from hotlap.records.seed_proof import Word
from hotlap.records.trials import Interval

__all__ = ["gate", "seen_from"]


def gate(found: Interval, max_slowdown_frac: float) -> Word:
    """The claim: throughput is at least ``1 - max_slowdown_frac`` of the baseline's."""
    least = 1.0 - max_slowdown_frac
    if found.high < least:
        return "refuted"
    return "proved" if found.low >= least else "not proved"


def seen_from(found: Interval, max_slowdown_frac: float) -> float:
    """The slowdown at which the interval's upper end lies at what is allowed: it is refuted half of the time."""
    half = math.log(found.high / found.ratio)
    return 1.0 - (1.0 - max_slowdown_frac) * math.exp(-half)
