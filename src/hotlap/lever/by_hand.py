"""Levers that a person has to pull: they are never tried, and say what to do and where."""

from __future__ import annotations

from collections.abc import Callable

from hotlap.lever.contract import Target
from hotlap.lever.evidence import place
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Where

__all__ = ["advise", "advised", "at"]

_PLACES = 3
"""Places that are named; the rest come to light once these are done."""
_CLOSES = {"(": ")", "[": "]", "{": "}"}


def at(where: Where) -> str:
    """``train.py:48 (return flip(x))``, as far as it is known."""
    if not where.file:
        return "the sample loading"
    return f"{where.file}:{where.line}" + (f" ({_whole(where.text)})" if where.text else "")


def _whole(text: str) -> str:
    """The first line of a call over several lines, closed: ``DataLoader(`` is ``DataLoader(…)``."""
    return f"{text}…{_CLOSES[text[-1]]}" if text[-1] in _CLOSES else text


def advised(finding: Finding, advice: Callable[[Where], str]) -> list[Edit]:
    """One piece of advice for each place of the finding."""
    places = finding.where[:_PLACES] or [place()]
    return [Edit("advice", where.file, where.line, advice=advice(where)) for where in places]


def advise(target: Target, what: str) -> None:
    """What ``apply`` of such a lever does: it says that it does nothing."""
    target.unfit(f"it is advice, to be followed by hand: {what}")
