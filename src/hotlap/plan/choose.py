"""Keep a measured move, or put it back."""

from __future__ import annotations

from dataclasses import dataclass

from hotlap.records.trials import Trial

__all__ = ["MIN_GAIN", "Choice", "choose"]

MIN_GAIN = 0.01
"""A move has to be faster by more than this share: smaller gains are not worth a line in a plan."""


@dataclass(frozen=True)
class Choice:
    """The verdict on one trial, in words."""

    kept: bool
    reason: str


def choose(trial: Trial, min_gain: float = MIN_GAIN) -> Choice:
    """Keep iff the whole interval of the trial is above 1, and its middle above 1 + ``min_gain``."""
    if trial.status == "failed":
        return Choice(False, f"failed: {trial.reason}" if trial.reason else "failed")
    if trial.status == "refused":
        return Choice(False, f"refused: {trial.reason}" if trial.reason else "refused")
    if trial.status == "no-effect":
        return Choice(False, f"no effect: {trial.reason or 'it found nothing to change'}")
    found = trial.interval
    if found is None:
        return Choice(False, f"not measured: {trial.reason or 'too few undisturbed windows'}")
    shown = f"{found.ratio:.2f}x [{found.low:.2f}, {found.high:.2f}]"
    if found.low > 1.0 and found.ratio > 1.0 + min_gain:
        return Choice(True, shown)
    if found.high < 1.0:
        return Choice(False, f"{shown}: slower, put back")
    if found.high <= 1.0 + min_gain:
        return Choice(False, f"{shown}: no gain, put back")
    return Choice(False, f"{shown}: the gain is not certain, put back")
