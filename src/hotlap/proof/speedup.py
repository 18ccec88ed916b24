"""The speedup of two arms that took turns, with an interval that survives being looked at after every window.

Model. Adjacent windows of different arms form a pair (each window in one pair at most); ``d`` is the log ratio of their
step times. Noise that a shared machine adds slowly (AR(1), drift) hits both windows of a pair and cancels; what is left
of it correlates neighbouring pairs *negatively* (``-phi * (1 - phi)**2``), which makes the interval too wide, never too
narrow.

Interval within a launch. A trial looks after each window and stops when it likes the answer, so a fixed-n t-interval
would be wrong. This is a confidence sequence: valid at every look at once, whatever the stopping rule. It inverts the
e-process of the t-test with a Gaussian mixture over the effect size ``mu / sigma ~ N(0, tau**2)`` and the right Haar
prior on ``sigma`` (Lai, "On confidence sequences", Ann. Statist. 1976; Wang & Ramdas, "Anytime-valid t-tests and
confidence sequences for Gaussian means with unknown variance", 2023). With n pairs, r = 1 / (1 + n tau^2) and
K = (1 / (r alpha^2))^(1/n):

    |mean(d) - mu| <= (s / sqrt(n)) * sqrt((n - 1) * (K - 1) / (1 - K r))      unbounded while K r >= 1

Outliers. From ten pairs on, a tenth is trimmed at either end and ``s`` is the winsorised deviation over (1 - 2g/n)
(Tukey & McLaughlin 1963, Yuen 1974), with the pairs that are left as n.

Interval over launches. Two launches of one program differ for their whole life (address layout, huge pages, what the C
library's allocator has learned), which no number of windows shows (Mytkowicz et al., "Producing wrong data without
doing anything obviously wrong!", ASPLOS 2009; Kalibera & Jones, "Rigorous benchmarking in reasonable time", ISMM 2013).
From three pairs of launches on, each gives one value, the mean of its pairs, and Student's t on these values holds
everything that varies, between launches and within. Whoever looks at the launches more than once gives each look a
level of its own (lap/launches). With fewer launches an allowance stands in for what was not measured:
``WITHIN_A_TRIAL_FRAC`` where the answer only steers a search, ``UNKNOWN_LAUNCH_FRAC`` where something is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hotlap.proof.student_t import t_quantile
from hotlap.records.trials import Interval, Window

__all__ = [
    "LEVEL",
    "MIN_LAUNCHES",
    "MIN_PAIRS",
    "STEERING_LEVEL",
    "UNKNOWN_LAUNCH_FRAC",
    "WITHIN_A_TRIAL_FRAC",
    "half_width",
    "pair_log_ratios",
    "ratio_interval",
]

MIN_PAIRS = 3
MIN_LAUNCHES = 3
"""Fewer pairs of launches say too little about how launches differ."""
LEVEL = 0.98
"""Two-sided, so that equals are called "faster" in at most one comparison of a hundred, and "slower" as rarely."""
STEERING_LEVEL = 0.95
"""Where the answer only steers a search: a quarter narrower at four pairs, so that a noisy machine gets anywhere within
the budget. Equals end as "faster" in one trial of forty at most; no claim rests on it, the proof comes after."""
WITHIN_A_TRIAL_FRAC = 0.03
"""What two launches of one program usually differ by, as a fraction of the ratio. Prior: launches of bench/healthy.py
with a quiet allocator deviate by 0.9 % each (bench/results/power.json), and not every script is as quiet."""
UNKNOWN_LAUNCH_FRAC = 0.25
"""What they can differ by. Prior: with glibc's own thresholds, launches of that script were up to 18 % apart
(bench/results/honesty.json)."""
_TAU2 = 25.0
"""Variance of the mixture over effect sizes: speedups worth finding are several deviations of one pair large."""
_TRIM_FROM = 10
_TRIM_FRAC = 0.1
_NOISE_FLOOR = 1e-4
"""Deviation of a pair is never taken below this: no clock and scheduler repeat a window better."""


def pair_log_ratios(windows: Sequence[Window], overhead_baseline_s: float, overhead_candidate_s: float) -> list[float]:
    """Log of throughput candidate / baseline for each pair of windows adjacent in time (dropped ones ignored)."""
    usable = sorted((w for w in windows if w.dropped is None and w.steps > 0), key=lambda w: w.t)
    overhead_s = {"baseline": overhead_baseline_s, "candidate": overhead_candidate_s}
    ratios: list[float] = []
    waiting: Window | None = None
    for window in usable:
        if waiting is None or waiting.arm == window.arm:
            waiting = window  # the later of two windows of one arm is nearer to the pair's other half
            continue
        step_s = {w.arm: w.steady_s + overhead_s[w.arm] for w in (waiting, window)}
        if min(step_s.values()) > 0.0:
            ratios.append(math.log(step_s["baseline"] / step_s["candidate"]))
        waiting = None
    return ratios


def half_width(n: int, deviation: float, level: float) -> float:
    """Half width of the confidence sequence for a mean of ``n`` values; infinite while ``n`` is too small."""
    alpha = 1.0 - level
    r = 1.0 / (1.0 + n * _TAU2)
    k = (1.0 / (r * alpha * alpha)) ** (1.0 / n)
    if k * r >= 1.0:
        return math.inf
    return deviation / math.sqrt(n) * math.sqrt((n - 1) * (k - 1.0) / (1.0 - k * r))


def _centre_and_half_width(log_ratios: Sequence[float], level: float) -> tuple[float, float]:
    values = np.sort(np.asarray(log_ratios, dtype=np.float64))
    n = len(values)
    cut = int(_TRIM_FRAC * n) if n >= _TRIM_FROM else 0
    kept = values[cut : n - cut]
    winsorised = np.clip(values, kept[0], kept[-1])
    deviation = max(float(winsorised.std(ddof=1)), _NOISE_FLOOR)
    if not cut:
        return float(kept.mean()), half_width(n, deviation, level)
    left = len(kept)
    # Yuen's standard error is s_w / ((1 - 2g/n) sqrt(n)) with left - 1 degrees of freedom
    scaled = deviation * n / left * math.sqrt(left / n)
    return float(kept.mean()), half_width(left, scaled, level)


def ratio_interval(
    windows: Sequence[Window],
    overhead_baseline_s: float = 0.0,
    overhead_candidate_s: float = 0.0,
    level: float = LEVEL,
    launch_frac: float = WITHIN_A_TRIAL_FRAC,
) -> Interval | None:
    """Throughput of the candidate over the baseline (above 1 is faster), valid however often it is looked at.

    ``overhead_*_s``: each arm's periodic work (validation, checkpoints, epoch starts) in seconds per step, added to
    every window's ``steady_s``; taken as known, its spread is not in the interval. ``level`` in (0, 1) is two-sided:
    a comparison of equals ends as "faster" with probability at most ``(1 - level) / 2`` over all looks together
    (checked under AR(1) and heavy-tailed noise, and under launches that differ, in tests/proof/test_speedup.py).
    ``launch_frac``: allowance for what launches differ by, a fraction of the ratio, used below ``MIN_LAUNCHES`` pairs
    of launches only.

    ``None`` with fewer than three pairs of windows in every launch, or while these are too few to give ``level``.
    Raises ValueError for a level outside (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}, expected a probability between 0 and 1")
    launches = [
        pair_log_ratios([w for w in windows if w.launch == launch], overhead_baseline_s, overhead_candidate_s)
        for launch in sorted({w.launch for w in windows})
    ]
    launches = [log_ratios for log_ratios in launches if len(log_ratios) >= MIN_PAIRS]
    if len(launches) >= MIN_LAUNCHES:
        centre, half = _over_launches(launches, level)
    elif launches:
        centre, half = _centre_and_half_width([d for log_ratios in launches for d in log_ratios], level)
        half += math.log1p(launch_frac)
    else:
        return None
    if not math.isfinite(half) or half > 50.0:
        return None
    return Interval(math.exp(centre), math.exp(centre - half), math.exp(centre + half), level, len(launches))


def _over_launches(launches: Sequence[Sequence[float]], level: float) -> tuple[float, float]:
    means = np.array([_centre_and_half_width(log_ratios, level)[0] for log_ratios in launches])
    n = len(means)
    deviation = max(float(means.std(ddof=1)), _NOISE_FLOOR)
    return float(means.mean()), t_quantile(n - 1, 0.5 + level / 2) * deviation / math.sqrt(n)
