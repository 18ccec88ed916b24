"""How much sooner, on the wall clock, the candidate reaches the loss that the baseline ends with."""

from __future__ import annotations

import numpy as np

from hotlap.proof.noninferior import Losses, common_steps, final_losses

__all__ = ["steps_to_loss", "time_to_loss"]

_WINDOW_FRAC = 0.1
"""Losses are averaged over a tenth of the run before they are compared with the target."""


def steps_to_loss(arm: Losses, steps: int, target: float, window: int) -> float | None:
    """Steps until the seeds' mean loss, averaged over the last ``window`` steps, is at or below ``target``.

    Interpolated between steps; ``None`` when it never gets there within ``steps``.
    """
    mean = np.mean([curve[:steps] for curve in arm], axis=0)
    if not np.isfinite(mean).all() or steps < window:
        return None
    smooth = np.convolve(mean, np.ones(window) / window, mode="valid")
    below = np.flatnonzero(smooth <= target)
    if not len(below):
        return None
    k = int(below[0])
    if k == 0:
        return float(window)
    before, after = float(smooth[k - 1]), float(smooth[k])
    return window + k - 1 + (before - target) / (before - after)


def time_to_loss(baseline: Losses, candidate: Losses, ratio: float) -> float | None:
    """How many times sooner the candidate gets there; ``ratio``: its throughput over the baseline's.

    ``None`` where the baseline's loss does not fall (no time to speak of), or the candidate never reaches its end.
    """
    seeds = min(len(baseline), len(candidate))
    steps = common_steps(baseline[:seeds], candidate[:seeds])
    if seeds == 0 or steps < 10:
        return None
    window = max(3, int(steps * _WINDOW_FRAC))
    target = float(final_losses(baseline[:seeds], steps).mean())
    own = steps_to_loss(baseline[:seeds], steps, target, window)
    theirs = steps_to_loss(candidate[:seeds], steps, target, window)
    if own is None or theirs is None or own <= window:
        return None
    return ratio * own / theirs
