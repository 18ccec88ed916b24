"""Source edits as data: what a lever would write into the user's file. Applied by patch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Edit"]


@dataclass(frozen=True)
class Edit:
    """One change of source.

    ``kind``: ``set_keyword`` (value, name of callee in ``target``), ``wrap_with`` (a ``with`` around the statement that
    calls ``target``), ``insert_before`` / ``insert_after`` (code beside it), ``replace_call``, ``advice`` (text only: a
    person has to do it).
    """

    kind: str
    file: str
    line: int
    target: str = ""
    code: str = ""
    keywords: dict[str, Any] = field(default_factory=dict)
    advice: str = ""
