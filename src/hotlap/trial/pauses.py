"""Pauses that come round every so many steps (a profiler that writes its trace, a plot): how long one cycle is. Pure.

A pause is no event of the timeline, and windows shorter than a cycle meet it or miss it: the logarithm and the trimmed
mean of a trial then take it for noise, and a lever that takes it away for one that hardly pays. Windows of whole
cycles hold as many pauses each.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from hotlap.records.rows import Step
from hotlap.trial.windows import openings, steady_ns

__all__ = ["Cycle", "find_cycle"]

PAUSE = 5.0
"""A step that takes this many times the median one holds a pause."""
LEAST_SHARE = 0.1
"""Pauses that take a smaller share of the time change no verdict."""
LEAST_STEPS = 4
"""A shorter cycle fits into every window as it is."""
LONGEST_S = 8.0
"""A trial has no time for windows that are longer; such pauses stay what they were, a rare outlier."""
WITHIN = 2048
"""Steps from the start in which the pauses have to come round."""
OVERSHOT = 2
"""Steps by which a turn may miss those that were due: the timeline is looked at now and then."""
MOST = 64
"""Pauses among which distances are taken."""
FOUND_FRAC = 0.8
"""Of the steps at which a pause is due, so many have to hold one."""


@dataclass(frozen=True)
class Cycle:
    """Steps and seconds from one pause to the next; one step and no time where nothing comes round."""

    steps: int = 1
    seconds: float = 0.0

    def whole(self, steps: float, left_out: int) -> float:
        """The steps of a turn of at least ``steps``: whole cycles, besides those that are ``left_out`` of a window.

        ``steps`` itself where nothing comes round.
        """
        return steps if self.steps == 1 else math.ceil(steps / self.steps) * self.steps + left_out + OVERSHOT


def find_cycle(steps: Sequence[Step]) -> Cycle:
    """The cycle of the pauses in the rows of one process, from its first step on.

    Three pauses at equal distances make one; two do where the first came one cycle after the start.
    """
    first = steps[:WITHIN]
    times = [steady_ns(row) / 1e9 for row in first]
    opening = {row.t for row in openings(first)}  # accounted for by itself
    if len(times) <= LEAST_STEPS or any(row.n != 1 for row in first):
        return Cycle()
    usual = statistics.median(times)
    pauses = [
        i for i, time in enumerate(times) if i and time > PAUSE * usual and first[i].t not in opening
    ]  # the first step warms up
    gaps = Counter(b - a for a, b in combinations(pauses[-MOST:], 2))
    if not gaps:
        return Cycle()
    every = gaps.most_common(1)[0][0]
    offset = Counter(i % every for i in pauses).most_common(1)[0][0]
    regular = [i for i in pauses if i % every == offset]
    due = 1 + (len(times) - 1 - regular[0]) // every
    enough = len(regular) >= 3 or (len(regular) == 2 and abs(regular[0] + 1 - every) <= 1)
    lost = sum(times[i] - usual for i in regular)
    seconds = every * usual + lost / len(regular)
    told = enough and len(regular) >= FOUND_FRAC * due and lost >= LEAST_SHARE * sum(times)
    return Cycle(every, seconds) if told and every >= LEAST_STEPS and seconds <= LONGEST_S else Cycle()
