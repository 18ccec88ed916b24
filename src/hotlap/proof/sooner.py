"""Time to quality over whole runs: when each arm's loss, on its own clock, is as low as it has to be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hotlap.proof.over_seeds import over_seeds
from hotlap.proof.speedup import MIN_LAUNCHES
from hotlap.records.seed_proof import ArmRun, SeedRuns, Stop, TimeToQuality, Word

__all__ = ["seconds_to", "time_to_quality"]

_FINAL_FRAC = 1 / 3
"""The final loss of a run is the mean over its last third, as in :mod:`hotlap.proof.noninferior`."""
_WINDOW_FRAC = 0.1
"""Losses are averaged over a tenth of their run before they are compared with it."""


def time_to_quality(used: Sequence[SeedRuns], stop: Stop) -> TimeToQuality:
    """With a loss to reach: when it was reached. Else: when each arm has the loss that the baseline ends with."""
    targets: list[float] = []
    seconds: dict[str, list[float | None]] = {"baseline": [], "candidate": []}
    for runs in used:
        target = stop.loss if stop.loss is not None else _final(runs.baseline)
        if target is None:
            continue
        targets.append(target)
        for label, run in (("baseline", runs.baseline), ("candidate", runs.candidate)):
            seconds[label].append(run.reached_s if stop.loss is not None else seconds_to(run, target))
    what = "the loss that was asked for" if stop.loss is not None else "the loss that the baseline ends with"
    pairs = list(zip(seconds["baseline"], seconds["candidate"], strict=True))
    ratios = [b / c for b, c in pairs if b is not None and c is not None]
    interval = over_seeds(ratios) if ratios and len(ratios) == len(pairs) else None
    word: Word = "not proved"
    if interval is not None and len(ratios) >= MIN_LAUNCHES:  # fewer do not show what the machine did meanwhile
        word = "proved" if interval.low > 1 else "refuted" if interval.high < 1 else "not proved"
    elif len(pairs) > 1 and all(b is not None and c is None for b, c in pairs):
        word = "refuted"
    return TimeToQuality(what, targets, seconds["baseline"], seconds["candidate"], interval, word)


def _values(run: ArmRun) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in run.loss], dtype=np.float64)


def _final(run: ArmRun) -> float | None:
    values = _values(run)
    final = float(values[len(values) - max(1, int(len(values) * _FINAL_FRAC)) :].mean()) if len(values) else np.nan
    return final if np.isfinite(final) else None


def seconds_to(run: ArmRun, target: float) -> float | None:
    """From launch until the loss, averaged over a tenth of the run, is at or below ``target``; None: never."""
    values = _values(run)
    window = max(3, int(len(values) * _WINDOW_FRAC))
    if len(values) < window:
        return None
    smooth = np.convolve(values, np.ones(window) / window, mode="valid")
    below = np.flatnonzero(smooth <= target)  # a NaN is not
    return run.end_s[int(below[0]) + window - 1] if len(below) else None
