"""A ratio measured once per seed: its interval over seeds, and how many seeds would decide it.

Each seed launches both arms anew, so its one value holds everything that varies: between launches, between seeds, and
within a run. Student's t on the logs is the interval; the number of seeds is fixed beforehand. Fewer than
``MIN_LAUNCHES`` seeds say too little about how launches differ: then each side is widened by
``UNKNOWN_LAUNCH_FRAC`` (see :mod:`hotlap.proof.speedup`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hotlap.proof.noninferior import LEVEL as ONE_SIDED
from hotlap.proof.speedup import LEVEL, MIN_LAUNCHES, UNKNOWN_LAUNCH_FRAC
from hotlap.proof.student_t import t_quantile
from hotlap.records.trials import Interval

__all__ = ["MOST_SEEDS", "over_seeds", "seeds_for_margin", "seeds_for_ratio"]

MOST_SEEDS = 100
"""More than these nobody runs: the difference is then too small to be told."""
_NOISE_FLOOR = 1e-4
"""Deviation between seeds is never taken below this (as in a launch's windows)."""


def over_seeds(ratios: Sequence[float]) -> Interval | None:
    """The ratio over seeds with its interval; None without a value. Raises ValueError for a ratio that is none."""
    if not ratios:
        return None
    if min(ratios) <= 0:
        raise ValueError(f"a ratio is {min(ratios)}, expected positive ones")
    logs = np.log(np.asarray(ratios, dtype=np.float64))
    n, centre = len(logs), float(np.log(ratios).mean())
    if n >= MIN_LAUNCHES:
        half = t_quantile(n - 1, 0.5 + LEVEL / 2) * _deviation(logs) / math.sqrt(n)
    else:
        half = float(logs.max() - logs.min()) / 2 + math.log1p(UNKNOWN_LAUNCH_FRAC)
    return Interval(math.exp(centre), math.exp(centre - half), math.exp(centre + half), LEVEL, n)


def _deviation(logs: np.ndarray) -> float:
    return max(float(logs.std(ddof=1)), _NOISE_FLOOR)


def seeds_for_ratio(ratios: Sequence[float]) -> int | None:
    """Seeds with which the interval would lie on one side of 1, if more of them spread as these do.

    None: more than ``MOST_SEEDS``, or not known from one seed.
    """
    if len(ratios) < 2:
        return None
    logs = np.log(np.asarray(ratios, dtype=np.float64))
    centre, deviation = abs(float(logs.mean())), _deviation(logs)
    for n in range(MIN_LAUNCHES, MOST_SEEDS + 1):
        if t_quantile(n - 1, 0.5 + LEVEL / 2) * deviation / math.sqrt(n) < centre:
            return n
    return None


def seeds_for_margin(delta: float, upper: float, margin: float, seeds: int, paired: bool) -> int | None:
    """Seeds with which the upper bound would be within the margin, if more of them came out as these.

    The bound is that of :func:`hotlap.proof.noninferior.difference`. None: more than ``MOST_SEEDS``, or the difference
    itself is beyond the margin.
    """
    if delta >= margin or seeds < 2:
        return None
    arms = 1 if paired else 2
    deviation = (upper - delta) / t_quantile(arms * (seeds - 1), ONE_SIDED) * math.sqrt(seeds)
    for n in range(2, MOST_SEEDS + 1):
        if delta + t_quantile(arms * (n - 1), ONE_SIDED) * deviation / math.sqrt(n) <= margin:
            return n
    return None
