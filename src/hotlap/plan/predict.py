"""From seconds saved to throughput ratios."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hotlap.lever.contract import Gain
from hotlap.records.findings import Findings

__all__ = ["combined_ratio", "middle_s", "predicted_ratio", "within_roof"]

_LEAST = 0.02
"""No prediction leaves less than this share of the step."""

_BESIDE_COMPUTE = ("gc", "residual", "logging", "data_wait", "validation", "checkpoint")

_ROOF_SLACK = 0.1
"""Share of the compute by which the roof may have been measured too low: its trial is a short one."""


def within_roof(lever: str, gain: Gain, findings: Findings, phase: str | None = None) -> Gain:
    """The gain of a lever that was on when the roof was measured: all of these together save no more than the step's
    compute less the roof's step. ``phase`` is where the lever's cause lies: beside the compute there is no limit."""
    roof, compute_s = findings.roof, findings.step_model.compute_s
    if roof is None or lever not in roof.levers or phase in _BESIDE_COMPUTE:
        return gain
    room_s = max(compute_s - roof.step_s, 0.0) + _ROOF_SLACK * compute_s
    return replace(gain, low_s=min(gain.low_s, room_s), high_s=min(gain.high_s, room_s))


def middle_s(gain: Gain) -> float:
    """Middle of the interval, seconds per step."""
    return (gain.low_s + gain.high_s) / 2


def predicted_ratio(step_s: float, gain: Gain) -> float:
    """Predicted throughput ratio of one lever: step_s / (step_s - middle of the gain). 1.0 when the step is unknown."""
    if step_s <= 0:
        return 1.0
    return step_s / max(step_s - middle_s(gain), _LEAST * step_s)


def combined_ratio(step_s: float, gains: Iterable[Gain]) -> float:
    """Predicted ratio of several levers together.

    Each saves its share of what the ones before it left: seconds hidden by one lever cannot be saved again by another,
    so shares multiply rather than add.
    """
    left = 1.0
    for gain in gains:
        left /= predicted_ratio(step_s, gain)
    return 1.0 / max(left, _LEAST)
