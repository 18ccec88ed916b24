"""Metrics of verification: is it the same person? Scores of trials, higher for more alike; labels 1 for the same."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hotlap_workloads.errors import DataError, WorkloadError

__all__ = ["both_kinds", "eer", "error_rates", "left_of", "min_dcf", "tar_at_far"]

Floats = NDArray[np.float64]


def both_kinds(same: ArrayLike, where: object, what: str = "trials of one person", hint: str = "") -> None:
    """Raise DataError where all are of one kind, or there are none. ``what`` names those that are 1."""
    y = np.asarray(same).astype(bool)
    if y.all() or not y.any():
        raise DataError(where, f"has {y.sum()} {what} among {y.size}: both kinds are needed.", hint)


def left_of(paths: Iterable[Path], bad: set[Path]) -> str:
    """What an error names where too little is left of these files without those that cannot be read."""
    gone = sorted(bad.intersection(paths))
    return f"{gone[0]} and {len(gone) - 1} other files cannot be read. What is left" if gone else "the data"


def error_rates(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """(misses, false alarms) as shares, at every threshold from "accept nothing" to "accept all".

    Trials of equal score are accepted together.
    """
    s, y = np.asarray(scores, np.float64), np.asarray(labels).astype(bool)
    if not np.isfinite(s).all():
        raise WorkloadError(f"{int((~np.isfinite(s)).sum())} of {s.size} scores are no numbers.")
    both_kinds(y, "the evaluation")
    order = np.argsort(-s, kind="stable")
    s, y = s[order], y[order]
    last_of_its_score = np.append(s[1:] != s[:-1], True)
    accepted_same = np.append(0, np.cumsum(y)[last_of_its_score])
    accepted_other = np.append(0, np.cumsum(~y)[last_of_its_score])
    return 1 - accepted_same / y.sum(), accepted_other / (~y).sum()


def eer(scores: ArrayLike, labels: ArrayLike) -> float:
    """Equal error rate, 0 to 1: where the line between neighbouring thresholds has misses = false alarms."""
    misses, alarms = error_rates(scores, labels)
    gap = misses - alarms  # falls from 1 to -1
    after = int(np.argmax(gap <= 0))
    before = after - 1
    share = gap[before] / (gap[before] - gap[after])
    return float(alarms[before] + share * (alarms[after] - alarms[before]))


def min_dcf(
    scores: ArrayLike, labels: ArrayLike, p_target: float = 0.05, c_miss: float = 1.0, c_alarm: float = 1.0
) -> float:
    """Smallest detection cost over all thresholds, over the cost of always giving the cheaper answer (NIST SRE)."""
    misses, alarms = error_rates(scores, labels)
    cost: Any = c_miss * p_target * misses + c_alarm * (1 - p_target) * alarms
    return float(cost.min() / min(c_miss * p_target, c_alarm * (1 - p_target)))


def tar_at_far(scores: ArrayLike, labels: ArrayLike, far: float) -> float:
    """Share of the same accepted, at the loosest threshold that accepts at most ``far`` of the others."""
    misses, alarms = error_rates(scores, labels)
    return float(1 - misses[alarms <= far].min())
