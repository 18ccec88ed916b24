"""Is fast as good as slow, and how much sooner? Pure: scores and curves in, verdicts out.

Errors are shares. The interval of a difference resamples *identities*, not trials: a person stands in many trials,
whose scores go up and down together, so trials are far fewer opinions than they look. Seeds are resampled too.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

__all__ = [
    "LEVEL",
    "Trials",
    "Verdict",
    "by_identity",
    "by_seed",
    "judged",
    "time_to_quality",
    "weighted_eer",
    "weights_of",
]

LEVEL = 0.95
"""One-sided confidence of the bounds, the usual one of non-inferiority trials."""
RESAMPLES = 1000
Floats = NDArray[np.float64]
Curve = Sequence[tuple[float, float]]
"""(seconds since the run began, metric) of each evaluation."""


@dataclass(frozen=True)
class Trials:
    """Trial i compares identities ``left[i]`` and ``right[i]`` (numbers from 0); ``same[i]`` when they are one."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    same: NDArray[np.bool_]


@dataclass(frozen=True)
class Verdict:
    """``worse``: how much worse fast is, on average; its one-sided bounds; None where there are too few runs."""

    verdict: str
    worse: float
    lower: float | None
    upper: float | None
    margin: float
    how: str


def judged(worse: float, lower: float | None, upper: float | None, margin: float, how: str) -> Verdict:
    """Proved within the margin, refuted beyond it, else not proved."""
    word = "not proved"
    if upper is not None and upper <= margin:
        word = "proved"
    elif lower is not None and lower > margin:
        word = "refuted"
    return Verdict(word, worse, lower, upper, margin, how)


def weighted_eer(scores: Floats, same: NDArray[np.bool_], weights: Floats) -> float:
    """Equal error rate where trial i counts ``weights[i]`` times; trials of equal score are accepted together."""
    order = np.argsort(-scores, kind="stable")
    return _eer(same[order], _last_of_its_score(scores[order]), weights[order])


def _last_of_its_score(falling: Floats) -> NDArray[np.bool_]:
    return np.append(falling[1:] != falling[:-1], True)


def _eer(same: NDArray[np.bool_], last: NDArray[np.bool_], weights: Floats) -> float:
    of_same, of_other = np.cumsum(weights * same), np.cumsum(weights * ~same)
    misses = 1 - np.append(0, of_same[last]) / of_same[-1]
    alarms = np.append(0, of_other[last]) / of_other[-1]
    gap = misses - alarms
    after = int(np.argmax(gap <= 0))
    share = gap[after - 1] / (gap[after - 1] - gap[after])
    return float(alarms[after - 1] + share * (alarms[after] - alarms[after - 1]))


def by_identity(
    trials: Trials, slow: Sequence[Floats], fast: Sequence[Floats], margin: float, resamples: int = RESAMPLES
) -> Verdict:
    """Verdict on the EER: scores of each seed's model on the same trials. Identities and seeds are drawn again.

    Both arms get the same identities.
    """
    arms = [[_sorted(scores, trials.same) for scores in arm] for arm in (slow, fast)]
    everything = np.ones(len(trials.same))
    estimate = _mean_eer(arms[1], everything) - _mean_eer(arms[0], everything)
    random = np.random.default_rng(0)
    count = int(max(trials.left.max(), trials.right.max())) + 1
    draws = []
    while len(draws) < resamples:
        times = np.bincount(random.integers(count, size=count), minlength=count).astype(np.float64)
        weights = weights_of(trials, times)
        if not weights[trials.same].any() or not weights[~trials.same].any():
            continue  # a draw without both kinds has no EER
        chosen = [[arm[k] for k in random.integers(len(arm), size=len(arm))] for arm in arms]
        draws.append(_mean_eer(chosen[1], weights) - _mean_eer(chosen[0], weights))
    lower, upper = np.quantile(draws, [1 - LEVEL, LEVEL])
    seeds = min(len(slow), len(fast))
    how = f"EER of {len(trials.same)} trials, {resamples} resamples of {count} identities and {seeds} seeds"
    return judged(estimate, float(lower), float(upper), margin, how)


def weights_of(trials: Trials, times: Floats) -> Floats:
    """How often each trial counts when identity i was drawn ``times[i]`` times.

    One drawn m times gives its own trials m times, and those against one drawn n times m x n times; a copy is not
    compared with its copy.
    """
    within = trials.left == trials.right
    return times[trials.left] * np.where(within, 1.0, times[trials.right])


def _sorted(scores: Floats, same: NDArray[np.bool_]) -> Any:
    order = np.argsort(-scores, kind="stable")
    return order, same[order], _last_of_its_score(scores[order])


def _mean_eer(runs: Sequence[Any], weights: Floats) -> float:
    return statistics.fmean(_eer(same, last, weights[order]) for order, same, last in runs)


def by_seed(slow: Sequence[float], fast: Sequence[float], margin: float, higher: bool, metric: str = "") -> Verdict:
    """Verdict from the seeds' spread alone: Student's t on the pooled deviation of both arms' seeds."""
    sign = -1.0 if higher else 1.0
    a, b = np.asarray(slow), np.asarray(fast)
    worse = sign * float(b.mean() - a.mean())
    freedom = len(a) + len(b) - 2
    if min(len(a), len(b)) < 2:
        return judged(worse, None, None, margin, f"{metric}: one seed shows no spread")
    squares = float(((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum())
    error = (squares / freedom * (1 / len(a) + 1 / len(b))) ** 0.5
    half = float(stdtrit(freedom, LEVEL)) * error
    return judged(
        worse, worse - half, worse + half, margin, f"{metric}, {len(a)} and {len(b)} seeds, no identities known"
    )


def time_to_quality(slow: Sequence[Curve], fast: Sequence[Curve], higher: bool) -> dict[str, Any]:
    """When each run first is as good as slow ends on average; slow at its end where it never is.

    ``factor`` is slow's median time over fast's; None where fewer than all of the fast runs get there.
    """
    sign = -1.0 if higher else 1.0
    target = statistics.fmean(curve[-1][1] for curve in slow)

    def reached(curve: Curve) -> float | None:
        return next((at_s for at_s, value in curve if sign * (value - target) <= 0), None)

    own = [found if (found := reached(curve)) is not None else curve[-1][0] for curve in slow]
    theirs = [reached(curve) for curve in fast]
    times = [found for found in theirs if found is not None]
    factor = statistics.median(own) / statistics.median(times) if len(times) == len(fast) else None
    return {"target": target, "slow_s": own, "fast_s": theirs, "factor": factor}
