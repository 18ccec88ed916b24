"""Loss curves of arms whose steps hold different numbers of samples, put on one axis: samples seen, not steps.

A step of 48 samples has learned from twice what a step of 24 has, so curves are compared where both arms have seen the
same number of samples. Each curve is cut into stretches of equal samples, as wide as the widest step of either arm,
and a stretch's value is the mean loss of its samples (the integral of the loss over samples, divided by the width).
With equal steps in both arms a stretch is a step, and nothing changes.

That needs losses that are means over the batch: a loss that is a sum grows with the batch, and would look worse (or,
with a smaller batch, better) without being so. The first steps tell: at the start both arms have the same weights, so
their losses differ by chance or else by the batch's size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hotlap.proof.noninferior import Losses

__all__ = ["Equal", "at_equal_samples"]

Samples = Sequence[Sequence[int]]
"""Per seed: the samples of each step."""
FIRST_STEPS = 3
"""Steps at the start whose losses show whether the loss grows with the batch."""
SAME_BATCH = 0.01
"""Batches that differ by less than this share are the same."""


@dataclass(frozen=True)
class Equal:
    """Curves that can be compared value by value, or the reason why there are none."""

    curves: dict[str, list[list[float]]]
    width: int = 0
    """Samples of a stretch."""
    problem: str = ""


def at_equal_samples(losses: Mapping[str, Losses], samples: Mapping[str, Samples]) -> Equal:
    """Both arms' curves over stretches of equal samples. Keys are ``baseline`` and ``candidate``."""
    nothing: dict[str, list[list[float]]] = {arm: [] for arm in losses}
    pairs = [(curve, seen) for arm in losses for curve, seen in zip(losses[arm], samples[arm], strict=True)]
    if not all(losses.values()):
        return Equal(nothing, problem="no losses were seen in both arms")
    if any(len(curve) != len(seen) or any(n <= 0 for n in seen) for curve, seen in pairs):
        return Equal(nothing, problem="the samples of its steps are not known, so losses cannot be compared")
    if _grows_with_batch(losses, samples):
        return Equal(nothing, problem="its loss grows with the batch (a sum, not a mean), so it says nothing here")
    width = max((n for _, seen in pairs for n in seen), default=1)
    stretches = min(sum(seen) for _, seen in pairs) // width
    return Equal(
        {
            arm: [_cut(curve, seen, width, stretches) for curve, seen in zip(losses[arm], samples[arm], strict=True)]
            for arm in losses
        },
        width,
    )


def _cut(curve: Sequence[float], seen: Sequence[int], width: int, stretches: int) -> list[float]:
    if all(n == width for n in seen[:stretches]):
        return [float(value) for value in curve[:stretches]]  # a stretch is a step
    ends = np.concatenate(([0.0], np.cumsum(seen, dtype=np.float64)))
    integral = np.concatenate(([0.0], np.cumsum(np.asarray(curve, dtype=np.float64) * np.asarray(seen))))
    at_edges = np.interp(np.arange(stretches + 1) * float(width), ends, integral)
    return [float(value) for value in np.diff(at_edges) / width]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _grows_with_batch(losses: Mapping[str, Losses], samples: Mapping[str, Samples]) -> bool:
    """Whether the losses at the start differ rather as the batches do than not at all."""
    batch, first = (
        {arm: _mean([value for row in rows[arm] for value in row[:FIRST_STEPS]]) for arm in rows}
        for rows in (samples, losses)
    )
    if min(*batch.values(), *first.values()) <= 0 or not all(map(math.isfinite, first.values())):
        return False
    wider = math.log(batch["candidate"] / batch["baseline"])
    higher = math.log(first["candidate"] / first["baseline"])
    return abs(wider) > SAME_BATCH and higher / wider > 0.5
