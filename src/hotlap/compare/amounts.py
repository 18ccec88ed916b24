"""What each phase and each cause took in both runs, and which of the changes two single runs can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from hotlap.compare.side import Side
from hotlap.records.comparison import Amount
from hotlap.records.findings import Finding, Findings

__all__ = ["cause_amounts", "phase_amounts", "step_amount"]

BLOCKS = 10
"""A run is cut into so many blocks: neighbouring steps are alike, their blocks less so."""
LEAST_POINTS = 2 * BLOCKS
ERRORS = 2.0
"""Standard errors of a difference beyond which it is no chance of the steps that were drawn (about 1 in 20)."""
SAME_FRAC = 0.05
"""Share of the shorter step by which two runs of one script differ on one machine (its load, its clock, its caches).
Prior; launches of one quiet script were up to 4 % apart (bench/results/honesty.json)."""
NO_COST = "nothing-to-gain"
"""The cause that says that there is none."""


def step_amount(a: Side, b: Side) -> Amount:
    """The whole step, periodic work at the script's own cadence."""
    old, new = a.findings.throughput.step_s, b.findings.throughput.step_s
    scatter = _scatter(_steps(a.findings), _steps(b.findings))
    return _amount("step", old, new, scatter, _least(a, b))


def phase_amounts(a: Side, b: Side) -> list[Amount]:
    """Every phase that either run measured, largest change first."""
    names = dict.fromkeys([*a.findings.phases, *b.findings.phases])
    least = _least(a, b)
    found = []
    for name in names:
        old, new = _phase(a.findings, name), _phase(b.findings, name)
        if old is None and new is None:
            continue
        scatter = _scatter(_steps(a.findings, name), _steps(b.findings, name))
        found.append(_amount(name, old, new, scatter, least))
    return _largest_first(found)


def cause_amounts(a: Side, b: Side) -> list[Amount]:
    """Every cause that was found in either run, largest change first."""
    before = {f.cause: f for f in a.findings.findings if f.cause != NO_COST}
    after = {f.cause: f for f in b.findings.findings if f.cause != NO_COST}
    least = _least(a, b)
    return _largest_first(
        [_cause(a, b, before.get(cause), after.get(cause), least) for cause in dict.fromkeys([*before, *after])]
    )


def _cause(a: Side, b: Side, old: Finding | None, new: Finding | None, least: float) -> Amount:
    """A cause that was not found costs nothing, unless that run has no stacks to find it by: then it is not known."""
    old_s = old.seconds_per_step if old is not None else None
    new_s = new.seconds_per_step if new is not None else None
    unknown = a.stacks != b.stacks and (a if old is None else b).stacks is False and None in (old, new)
    change = None if unknown else (new_s or 0.0) - (old_s or 0.0)
    in_b = new is not None and (new_s or 0.0) >= (old_s or 0.0)
    shown, side = (new, b) if in_b else (old or new, a if old is not None else b)
    assert shown is not None
    scatter = _scatter(_steps(a.findings, shown.phase), _steps(b.findings, shown.phase))
    return Amount(
        name=shown.cause,
        a_s=old_s,
        b_s=new_s,
        change_s=change,
        ratio=_ratio(old_s, new_s),
        scatter_s=scatter,
        clear=change is not None and abs(change) > max(least, scatter or 0.0),
        detail=shown.detail,
        where=side.place(shown.where[0]) if shown.where and shown.where[0].file else None,
    )


def _amount(name: str, old: float | None, new: float | None, scatter: float | None, least: float) -> Amount:
    change = new - old if old is not None and new is not None else None
    clear = change is not None and abs(change) > max(least, scatter or 0.0)
    return Amount(name, old, new, change, _ratio(old, new), scatter, clear)


def _ratio(old: float | None, new: float | None) -> float | None:
    return new / old if old and new else None


def _least(a: Side, b: Side) -> float:
    return SAME_FRAC * min(a.findings.throughput.step_s, b.findings.throughput.step_s)


def _largest_first(found: list[Amount]) -> list[Amount]:
    def effect(amount: Amount) -> float:
        return abs(amount.change_s) if amount.change_s is not None else max(amount.a_s or 0.0, amount.b_s or 0.0)

    return sorted(found, key=lambda amount: (not amount.clear, -effect(amount)))


def _phase(findings: Findings, name: str) -> float | None:
    share = findings.phases.get(name)
    return share * findings.throughput.step_s if share is not None else None


def _steps(findings: Findings, phase: str | None = None) -> list[float]:
    """Seconds per step as the run went on, warm-up left out: of the step, or of one phase where it was measured."""
    points = [p for p in findings.over_time if p.get("step", 0) >= findings.throughput.warmup_steps]
    if phase is None:
        return [float(point["step_s"]) for point in points]
    return [float(point["phases"][phase]) for point in points if phase in point.get("phases", {})]


def _scatter(a: Sequence[float], b: Sequence[float]) -> float | None:
    errors = [_error(values) for values in (a, b)]
    known = [error for error in errors if error is not None]
    return ERRORS * math.hypot(*known) if len(known) == len(errors) else None


def _error(values: Sequence[float]) -> float | None:
    """Standard error of the mean, from the means of consecutive blocks. None: too few values."""
    if len(values) < LEAST_POINTS:
        return None
    means = [fmean(values[len(values) * n // BLOCKS : len(values) * (n + 1) // BLOCKS]) for n in range(BLOCKS)]
    return stdev(means) / math.sqrt(BLOCKS)
