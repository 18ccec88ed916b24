"""Which value of a knob to try next: the user's order, given up early where going on is futile."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.lever.contract import Gain
from hotlap.plan.knobs import same_value
from hotlap.plan.match import Candidate, Tried, canonical
from hotlap.records.knob import Knob, Scalar
from hotlap.records.trials import OUT_OF_MEMORY, LeverResult

__all__ = ["knob_candidates", "left_out"]

MOST_MISSES = 2
"""Values in a row that did not pay before a knob is given up."""


def knob_candidates(knobs: Sequence[Knob], results: Sequence[LeverResult], tried: Tried) -> list[Candidate]:
    """For each knob the next value worth a trial. ``results``: what was decided so far, in order."""
    found = []
    for knob in knobs:
        if _misses(knob, results) >= MOST_MISSES:
            continue
        for value in _worth(knob, results):
            setting = knob.setting(value)
            if (knob.id, canonical(setting)) not in tried:
                nothing_known = Gain(0.0, 0.0, "prior")
                found.append(Candidate(knob.id, setting, "goal", "", 1.0, nothing_known))
                break
    return found


def left_out(knobs: Sequence[Knob], results: Sequence[LeverResult], tried: Tried) -> list[str]:
    """Which values of the knobs were not tried in a search, and why."""
    told = []
    for knob in knobs:
        fresh = [v for v in _other(knob) if (knob.id, canonical(knob.setting(v))) not in tried]
        if not fresh:
            continue
        values = ", ".join(str(value) for value in fresh)
        if not set(fresh) & set(_worth(knob, results)):
            why = f"memory does not allow {_name(_out_of_memory(knob, results))}"
        elif _misses(knob, results) >= MOST_MISSES:
            why = f"the {MOST_MISSES} values before did not pay"
        else:
            why = "there was no time left to try it, or to try it again (--budget)"
        told.append(f"{knob.id}: {values} not tried: {why}.")
    return told


def _other(knob: Knob) -> list[Scalar]:
    return [value for value in knob.values if not same_value(value, knob.present)]


def _worth(knob: Knob, results: Sequence[LeverResult]) -> list[Scalar]:
    """Values other than the present one, without those above one that ran out of memory."""
    limit = _out_of_memory(knob, results)
    return [value for value in _other(knob) if limit is None or not _at_least(value, limit)]


def _out_of_memory(knob: Knob, results: Sequence[LeverResult]) -> float | None:
    failed = [_number(r.setting["value"]) for r in results if r.id == knob.id and OUT_OF_MEMORY in r.reason]
    return min((number for number in failed if number is not None), default=None)


def _at_least(value: Scalar, limit: float) -> bool:
    number = _number(value)
    return number is not None and number >= limit


def _number(value: Scalar) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except ValueError:
        return None


def _name(number: float | None) -> str:
    return "" if number is None else f"{number:g}"


def _misses(knob: Knob, results: Sequence[LeverResult]) -> int:
    """Values at the end of ``results`` that did not pay, one after the other."""
    count = 0
    for result in reversed([r for r in results if r.id == knob.id]):
        if result.kept:
            break
        count += 1
    return count
