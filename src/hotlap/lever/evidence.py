"""What every lever asks of the findings."""

from __future__ import annotations

from collections.abc import Collection

from hotlap.records.findings import Finding, Findings, Where

__all__ = ["first", "place"]


def first(findings: Findings, causes: Collection[str]) -> Finding | None:
    """The largest finding whose cause is one of ``causes``, or None."""
    found = [f for f in findings.findings if f.cause in causes]
    return max(found, key=lambda f: f.seconds_per_step) if found else None


def place(*candidates: Where | None) -> Where:
    """The first known place; line 0 of no file where none is (an edit there is advice to a person)."""
    for where in candidates:
        if where is not None:
            return where
    return Where(file="", line=0, function="")
