"""``run.json``: what was asked of Hotlap in one run, and how far it got."""

from __future__ import annotations

from dataclasses import dataclass, field

from hotlap.records.origin import Origin

__all__ = ["RunRecord"]


@dataclass
class RunRecord:
    """Written at the start with status ``running`` and again at the end."""

    kind: str
    """The command: ``diagnose``, ``speedup``, ``run``, ``prove``, ``check``."""
    command: list[str]
    """The user's command, as argv."""
    started: str
    status: str = "running"
    """``running`` (or killed), ``finished``, ``interrupted``, ``failed``."""
    exit_code: int | None = None
    """The script's, where it ran to its end."""
    wall_s: float | None = None
    refused: list[list[str]] = field(default_factory=list)
    """[lever id, why it cannot be used here]."""
    notes: list[str] = field(default_factory=list)
    plan_path: str | None = None
    """Where ``speedup`` wrote its plan, or the plan that ``run`` was given."""
    total_steps: int | None = None
    """Steps that the user said the script makes."""
    origin: Origin | None = None
    """The code and packages that the run started with; None: a run of an older Hotlap."""
    schema: str = "hotlap.run/1"
