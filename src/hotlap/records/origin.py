"""The origin of a run: the code, packages and variables that it started with, so that two runs can be told apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hotlap.records.plan import Move

__all__ = ["Origin"]


@dataclass(frozen=True)
class Origin:
    """What was there when a run began. None: not known, and ``notes`` say why."""

    script: str | None = None
    """Full path of the script; None: the command names none (``-m``, a notebook)."""
    repository: str | None = None
    """Top folder of the git repository around the script; None: there is none."""
    commit: str | None = None
    branch: str | None = None
    """None: no branch is checked out, or not known."""
    changed: list[str] | None = None
    """Tracked files that differ from the commit, by their path in the repository; None: not known."""
    tracked: bool | None = None
    """Whether git tracks the script; None: no script, or not known."""
    texts: dict[str, str] = field(default_factory=dict)
    """Digests of the script, of the changed files and, where git does not track the script, of the Python files beside
    it: by path in the repository, else from the script's folder."""
    packages: dict[str, str] | None = None
    """Version by package, as installed for the Python of the command; None: it was not found where."""
    variables: dict[str, str] = field(default_factory=dict)
    """Environment variables that are set and known to change how fast a training runs; no others."""
    moves: list[Move] = field(default_factory=list)
    """The moves that were applied (``hotlap run``)."""
    notes: list[str] = field(default_factory=list)
    schema: Literal["hotlap.origin/1"] = "hotlap.origin/1"
