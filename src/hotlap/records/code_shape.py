"""What the user's source looks like in places that cost time, as far as its syntax shows it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CodeShape"]


@dataclass(frozen=True)
class CodeShape:
    """One place: ``kind`` is the id of the cause that looks for it."""

    kind: str
    file: str
    line: int
    """The line to name."""
    function: str
    lines: frozenset[int]
    """Lines of the work that could be spared."""
    text: str = ""
    detail: str = ""
    """Names of the source, for the report: ``history``, ``range(x.shape[0])``."""
