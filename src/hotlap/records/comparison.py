"""The comparison of two runs, or of two plans: what ``hotlap compare`` found. Read by report and by scripts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from hotlap.records.findings import Where
from hotlap.records.plan import Move

__all__ = ["SCHEMA", "Amount", "Change", "Compared", "Comparison", "MoveChange", "Warned"]

SCHEMA: Literal["hotlap.compare/1"] = "hotlap.compare/1"


@dataclass(frozen=True)
class Compared:
    """One of the two. What a plan, or a run that was cut off, does not say is None."""

    name: str
    """The run folder's name, or the plan's file."""
    path: str
    kind: str
    """``diagnose``, ``speedup``, ``run`` or ``plan``."""
    script: str
    command: list[str] = field(default_factory=list)
    started: str | None = None
    status: str | None = None
    machine: str | None = None
    torch: str | None = None
    samples_per_s: float | None = None
    steps_per_s: float | None = None
    batch: float | None = None
    """Samples per step."""
    steady_steps: int | None = None
    """Steps that the numbers rest on."""
    in_trial: bool | None = None
    """Whether it was watched in a trial, which is stopped early, rather than to its own end."""
    speedup: float | None = None
    """Of its plan over the unmodified script, as recorded then; with its interval."""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Amount:
    """Seconds per step that the whole step, a phase or a cause took in A and in B."""

    name: str
    a_s: float | None
    """None: the phase was not measured, the cause was not found."""
    b_s: float | None
    change_s: float | None
    """``b_s - a_s``; a cause that was not found counts as 0 here. None: not measured in both, or not to be found in one
    (no stack samples)."""
    ratio: float | None
    """``b_s / a_s``: above 1, B takes longer. None where one of them is 0 or None."""
    scatter_s: float | None = None
    """Two standard errors of ``change_s``, from the scatter within each run; a cause's is that of its phase. None: too
    few steps."""
    clear: bool = False
    """Whether the change exceeds this scatter, and what two runs of one script differ by."""
    detail: str = ""
    where: Where | None = None
    """The first line of a cause, in the run in which it costs more."""


@dataclass(frozen=True)
class Change:
    """One fact that is not the same in both. None: it was not there, or not set."""

    group: Literal["code", "command", "levers", "machine", "packages", "settings", "variables"]
    what: str
    a: Any
    b: Any


@dataclass(frozen=True)
class MoveChange:
    """A lever that is in at least one of the two plans."""

    lever: str
    state: Literal["same", "setting", "preserves", "only a", "only b"]
    a: Move | None
    b: Move | None


@dataclass(frozen=True)
class Warned:
    """Why the two do not compare, or not in everything."""

    kind: str
    text: str


@dataclass(frozen=True)
class Comparison:
    """Two runs, or two plans: B against A."""

    of: Literal["runs", "plans"]
    a: Compared
    b: Compared
    warnings: list[Warned]
    step: Amount | None = None
    """The whole step; None of plans."""
    phases: list[Amount] = field(default_factory=list)
    """Largest change first; they add up to the step."""
    causes: list[Amount] = field(default_factory=list)
    """Largest change first; causes may overlap."""
    changes: list[Change] = field(default_factory=list)
    moves: list[MoveChange] = field(default_factory=list)
    """Of two plans, or of the plans of two runs: in A's order, then B's."""
    notes: list[str] = field(default_factory=list)
    """What is not known, and what to look at next."""
    schema: Literal["hotlap.compare/1"] = SCHEMA
