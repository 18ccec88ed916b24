"""Loss curves of whole runs, made comparable: value for value where steps are the same, one value a step elsewhere.

A very long run keeps one point for every second, fourth, ... step. A loss that is no number is NaN here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hotlap.proof.same import first_difference
from hotlap.records.seed_proof import ArmRun

__all__ = ["Curve", "at_equal_steps", "broken_at", "differ_at", "numbers", "per_step", "samples_per_step"]

Curve = Sequence[float | None]
"""Loss of each step; None: it is no number."""


def numbers(curve: Curve) -> list[float]:
    """The curve with NaN where a loss is no number."""
    return [math.nan if value is None else value for value in curve]


def at_equal_steps(one: ArmRun, other: ArmRun) -> tuple[list[float], list[float]]:
    """Both curves at the steps that both have."""
    theirs = dict(zip(other.step, numbers(other.loss), strict=False))
    pairs = [(v, theirs[s]) for s, v in zip(one.step, numbers(one.loss), strict=False) if s in theirs]
    return [a for a, _ in pairs], [b for _, b in pairs]


def per_step(run: ArmRun) -> list[float]:
    """The curve with a value for every step: a point stands for the steps since the one before."""
    values: list[float] = []
    for step, value in zip(run.step, numbers(run.loss), strict=False):
        values.extend([value] * (step - len(values)))
    return values


def samples_per_step(run: ArmRun) -> list[int]:
    """The samples of every step of :func:`per_step`."""
    values: list[int] = []
    for step, samples, _ in zip(run.step, run.samples, run.loss, strict=False):
        steps = step - len(values)
        values.extend([round(samples / steps)] * steps)
    return values


def differ_at(baseline: Curve, candidate: Curve) -> int | None:
    """First point whose losses differ in any bit (two that are no numbers are equal); None: none so far."""
    return first_difference(numbers(baseline), numbers(candidate))


def broken_at(baseline: Curve, candidate: Curve, points: int = 3) -> int | None:
    """First of so many points in a row at which the candidate's loss alone is no number."""
    alone = 0
    for index, (b, c) in enumerate(zip(baseline, candidate, strict=False)):
        alone = alone + 1 if c is None and b is not None else 0
        if alone == points:
            return index - points + 1
    return None
