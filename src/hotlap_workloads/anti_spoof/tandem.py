"""The tandem detection cost: what errors of the countermeasure cost in front of a given speaker verification system.

Kinnunen et al. 2018, "t-DCF: a Detection Cost Function for the Tandem Assessment of Spoofing Countermeasures and
Automatic Speaker Verification" (Odyssey, arXiv:1804.09618), with the costs and priors of the ASVspoof 2019 evaluation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.fields import fields
from hotlap_workloads.parts.verification import error_rates

__all__ = ["AsvErrors", "asv_errors", "min_tdcf", "read_asv_scores"]

P_SPOOF = 0.05
P_TARGET, P_OTHER = (1 - P_SPOOF) * 0.99, (1 - P_SPOOF) * 0.01
MISS_COST, ALARM_COST = 1.0, 10.0
"""The same for the countermeasure and for the speaker verification system."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AsvErrors:
    """Of the speaker verification system, at its equal error rate: shares of targets rejected, of others accepted, and
    of spoofed trials rejected."""

    misses: float
    alarms: float
    spoofs_rejected: float

    def costs(self, where: object = "ASV scores") -> tuple[float, float]:
        """Of a miss and of a false alarm of the countermeasure. DataError, which names ``where``, unless both cost."""
        per_miss = P_TARGET * (MISS_COST - MISS_COST * self.misses) - P_OTHER * ALARM_COST * self.alarms
        per_alarm = ALARM_COST * P_SPOOF * (1 - self.spoofs_rejected)
        if min(per_miss, per_alarm) <= 0:
            raise DataError(where, f"with {self} a countermeasure has nothing to win: t-DCF is not defined.")
        return per_miss, per_alarm


def read_asv_scores(file: Path) -> AsvErrors:
    """Lines ``SOURCE KEY SCORE``, the key target, nontarget or spoof."""
    scores: dict[str, list[float]] = {"target": [], "nontarget": [], "spoof": []}
    for line, (_, key, score) in fields(file, "SOURCE KEY SCORE"):
        if key not in scores:
            raise DataError(file, f"line {line}: the key is {key!r}, not target, nontarget or spoof.")
        try:
            value = float(score)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise DataError(file, f"line {line}: the score is {score!r}, no number.")
        scores[key].append(value)
    for key, values in scores.items():
        if not values:
            raise DataError(file, f"has no {key} trial.")
    errors = asv_errors(*(np.array(scores[key]) for key in ("target", "nontarget", "spoof")))
    errors.costs(file)
    return errors


def asv_errors(target: Floats, other: Floats, spoof: Floats) -> AsvErrors:
    """At the score where misses and false alarms come nearest to each other."""
    scores = np.concatenate([target, other])
    order = np.argsort(scores, kind="stable")
    is_target = (np.arange(len(scores)) < len(target))[order]
    rejected = np.append(0.0, np.cumsum(is_target)) / len(target)
    accepted = 1 - np.append(0.0, np.cumsum(~is_target)) / len(other)
    least = int(np.argmin(np.abs(rejected - accepted)))
    threshold = scores[order][least - 1] if least else -np.inf
    return AsvErrors(
        float(np.mean(target < threshold)), float(np.mean(other >= threshold)), float(np.mean(spoof < threshold))
    )


def min_tdcf(scores: ArrayLike, bona_fide: ArrayLike, asv: AsvErrors) -> float:
    """Smallest over all thresholds, over the cost of letting all pass or of letting none pass, the cheaper of both."""
    misses, alarms = error_rates(scores, bona_fide)
    per_miss, per_alarm = asv.costs()
    return float((per_miss * misses + per_alarm * alarms).min() / min(per_miss, per_alarm))
