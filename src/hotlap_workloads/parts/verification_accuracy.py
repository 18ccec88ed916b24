"""Accuracy and area under the curve of a verification: scores, higher for more alike; labels 1 for the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hotlap_workloads.parts.verification import error_rates

__all__ = ["best_accuracy", "roc_auc"]


def roc_auc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Area under the curve of accepted same over accepted others; trials of equal score count half."""
    misses, alarms = error_rates(scores, labels)
    return float(np.trapezoid(1 - misses, alarms))


def best_accuracy(scores: ArrayLike, labels: ArrayLike) -> tuple[float, float]:
    """(share of right answers, threshold): the best there is; a score of at least the threshold is accepted.

    Of several thresholds that are as good, the strictest.
    """
    misses, alarms = error_rates(scores, labels)
    s, y = np.asarray(scores, np.float64), np.asarray(labels).astype(bool)
    right = (1 - misses) * y.sum() + (1 - alarms) * (~y).sum()
    best = int(np.argmax(right))
    thresholds = np.append(np.inf, np.unique(s)[::-1])  # those of error_rates, in its order
    return float(right[best] / y.size), float(thresholds[best])
