"""One cause at one place of the source."""

from __future__ import annotations

from dataclasses import dataclass, field

from hotlap.records.edits import Edit

__all__ = ["Problem"]


@dataclass(frozen=True)
class Problem:
    """What a rule found. ``line`` and ``col`` count from 1."""

    cause: str
    """An id of :data:`hotlap.records.causes.CAUSES`, as in a diagnosis."""
    file: str
    line: int
    col: int
    message: str
    """What is there and what it costs, in one sentence."""
    advice: str
    edits: list[Edit] = field(default_factory=list)
    """What ``--fix`` writes; empty: a person has to do it."""
    text: str = ""
    """The line as it is."""
