"""What the user asked of a lap, and what the lap tells while it goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hotlap.records.knob import Knob

__all__ = ["Listener", "Options", "Silent"]

FIRST_STEP_S = 120.0
FIRST_STEP_SHARE = 0.4
"""Of the budget."""


@dataclass(frozen=True)
class Options:
    """Options of ``hotlap speedup`` and ``hotlap diagnose``."""

    command: list[str]
    budget_s: float = 225.0
    """Wall seconds for everything. The default leaves a whole ``hotlap speedup`` under four minutes."""
    budget_asked: bool = False
    """Whether the user named the budget. Otherwise the proof may take longer, where steps are slow."""
    steps: int | None = None
    """Steps of the first, diagnosing run; None: as many as its share of the budget allows."""
    allow: frozenset[str] = frozenset({"bits", "maths", "distribution"})
    only: frozenset[str] = frozenset()
    skip: frozenset[str] = frozenset()
    sandbox: bool = True
    scratch: str | None = None
    runs: Path | None = None
    seeds: int = 4
    """Pairs of launches of the proof, each with a seed of its own."""
    margin: float | None = None
    """Non-inferiority margin of the loss (share); None: from the baseline's own spread."""
    confirm: bool = True
    knobs: tuple[Knob, ...] = ()
    """The script's own settings that the search may change."""
    plan_path: Path = field(default_factory=lambda: Path("fast.yaml"))

    @property
    def first_step_s(self) -> float:
        """Seconds after which an arm that has made no step is given up: a larger budget waits for longer."""
        return max(FIRST_STEP_S, FIRST_STEP_SHARE * self.budget_s)


class Listener(Protocol):
    """Hears of progress. The lap itself never prints."""

    def update(self, stage: str, detail: str, arm: str, elapsed_s: float, budget_s: float, steps: int | None) -> None:
        """What goes on now; called a few times a second at most."""

    def line(self, text: str) -> None:
        """Something worth keeping on screen."""


class Silent:
    """A listener that does not listen."""

    def update(self, stage: str, detail: str, arm: str, elapsed_s: float, budget_s: float, steps: int | None) -> None:
        """Nothing."""

    def line(self, text: str) -> None:
        """Nothing."""
