"""Periodic work of two arms whose scripts may differ in how often they do it: each is charged for what it does.

Where it cannot be told whether one does it more often than the other, both readings count: the interval holds what each
of them gives, so that nothing is claimed that only one of them shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from hotlap.records.trials import Interval, Trial
from hotlap.trial.cadence import OPEN, OTHER, SAME
from hotlap.trial.periodic import ARMS

__all__ = ["cadence_notes", "hull", "readings", "samples_per_step"]


def readings(trial: Trial, *, per_sample: bool) -> list[dict[str, float]]:
    """What periodic work may add to a step (or sample) of each arm, in seconds: once for each way to read the trial."""
    by_kind = [list(_of_kind(trial, kind)) for kind in _kinds(trial)]
    units = samples_per_step(trial) if per_sample else {}
    return [
        {arm: sum(pair[n] for pair in chosen) / (units.get(arm) or 1.0) for n, arm in enumerate(ARMS)}
        for chosen in product(*by_kind)
    ]


def hull(found: Sequence[Interval | None]) -> Interval | None:
    """The interval that holds all of them; None where one of them is unbounded."""
    known = [interval for interval in found if interval is not None]
    if not known or len(known) < len(found):
        return None
    ratios = [interval.ratio for interval in known]
    ratio = ratios[0] if len(known) == 1 else math.sqrt(min(ratios) * max(ratios))
    low, high = min(interval.low for interval in known), max(interval.high for interval in known)
    return Interval(ratio, low, high, known[0].level, known[0].launches)


def samples_per_step(trial: Trial) -> dict[str, float]:
    """Samples of a step of each arm, over its windows; 0.0: unknown."""
    told = {}
    for arm in ARMS:
        counted = [w for w in trial.windows if w.arm == arm and w.steps]
        told[arm] = sum(w.samples for w in counted) / max(1, sum(w.steps for w in counted))
    return told


def cadence_notes(trial: Trial, names: Mapping[str, str]) -> list[str]:
    """What a reader has to know of periodic work. ``names``: where each arm is (``in the working tree``)."""
    notes = []
    for kind in _kinds(trial):
        row, what = trial.periodic["baseline"], kind.replace("_", " ")
        told = " and ".join(f"{_often(trial.periodic[arm][f'{kind}_own'])} {names[arm]}" for arm in ARMS)
        apart = row[f"{kind}_apart"]
        if apart == OTHER:
            notes.append(f"{what}: {told}; each is charged as often as it comes")
        elif apart == OPEN:
            notes.append(
                f"{what}: {told} as far as was seen, which may be chance; the interval holds both, this and one cadence"
            )
        if f"{kind}_at_most_s" in row:
            left_out = "it is left out" if apart == SAME else "the interval holds all that it may take"
            notes.append(f"{what}: none was seen from begin to end, so how long one takes is not known; {left_out}")
    return notes


def _often(per_step: float) -> str:
    return f"every {1.0 / per_step:,.0f} steps" if per_step > 0 else "never"


def _kinds(trial: Trial) -> list[str]:
    return [key.removesuffix("_own") for key in trial.periodic.get("baseline", {}) if key.endswith("_own")]


def _of_kind(trial: Trial, kind: str) -> Iterator[tuple[float, float]]:
    """Seconds per step that one kind adds to the baseline and to the candidate."""
    baseline, candidate = (trial.periodic[arm] for arm in ARMS)
    own = baseline[f"{kind}_own"], candidate[f"{kind}_own"]
    apart = baseline[f"{kind}_apart"]
    one = own[0] or own[1]
    rates = {SAME: [(one, one)], OPEN: [(one, one), own], OTHER: [own]}[apart]
    seconds = [(baseline.get(f"{kind}_s", 0.0), candidate.get(f"{kind}_s", 0.0))]
    if apart != SAME and f"{kind}_at_most_s" in baseline:
        seconds.append((baseline[f"{kind}_at_most_s"], candidate[f"{kind}_at_most_s"]))
    for rate, each in product(rates, seconds):
        yield rate[0] * each[0], rate[1] * each[1]
