"""Trials: what was measured, both arms, window by window, raw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "NO_FIRST_STEP",
    "NO_STEP",
    "NO_TIME",
    "OF_BASELINE",
    "OUT_OF_MEMORY",
    "TOO_FEW",
    "Interval",
    "LeverResult",
    "Trial",
    "Window",
]

OF_BASELINE = "the baseline: "
"""How the reason of a failed trial begins when it was the incumbent that could not go on."""

NO_TIME = "No time was left for it"
"""How the reason begins of a lever that fits, and was not tried for want of time."""
TOO_FEW = "of windows counted"
"""What the reason of a trial says that ended with too few of them: the steps were slow, or others had the cores."""
NO_FIRST_STEP = "no first step within"
"""What the reason says of an arm that was given up before it made a step."""
NO_STEP = "ended without a step"
"""What the reason says of a script that came to its own end and had made no step."""
OUT_OF_MEMORY = "out of memory"
"""What the reason of an end says where an arm found no memory, the host's or the device's."""


@dataclass(frozen=True)
class Interval:
    """A ratio of throughputs (candidate over baseline) with a two-sided confidence interval."""

    ratio: float
    low: float
    high: float
    level: float = 0.95
    launches: int = 1
    """Pairs of launches that it rests on."""


@dataclass(frozen=True)
class Window:
    """One arm's turn: the whole steps between thaw and freeze, the first ones dropped."""

    arm: str
    """``baseline`` or ``candidate``."""
    t: int
    """Monotonic nanoseconds at thaw."""
    steps: int
    samples: int
    steady_s: float
    """Mean seconds per step, periodic work left out."""
    dropped: str | None = None
    """Why the window does not count: neighbour load, too few steps."""
    launch: int = 0
    """Which pair of launches it belongs to: both arms are started afresh for each."""


@dataclass(frozen=True)
class Trial:
    """One candidate against the incumbent."""

    id: str
    """Lever id, ``roof``, ``without data``, ``proof``, ``self``."""
    setting: dict[str, Any]
    status: Literal["measured", "failed", "no-effect", "refused"]
    reason: str = ""
    interval: Interval | None = None
    windows: list[Window] = field(default_factory=list)
    periodic: dict[str, dict[str, float]] = field(default_factory=dict)
    """Per arm: mean seconds per event of validation, checkpoint, epoch_start, and their number."""
    losses: dict[str, list[float | None]] = field(default_factory=dict)
    """Per arm: the loss of each step from the first on (as far as both arms went). None: it is NaN or infinite."""
    loss_samples: dict[str, list[int]] = field(default_factory=dict)
    """Per arm: the samples of each of these steps; 0 when unknown."""
    startup_s: dict[str, float] = field(default_factory=dict)
    """Per arm: launch to first step."""
    wall_s: float = 0.0
    changes: int = 0
    """How many things the levers of the candidate changed in the process."""
    notes: list[str] = field(default_factory=list)
    schema: Literal["hotlap.trial/1"] = "hotlap.trial/1"


@dataclass(frozen=True)
class LeverResult:
    """A lever's line in ``speedup --json``."""

    id: str
    setting: dict[str, Any]
    preserves: str
    predicted: float | None
    """Predicted throughput ratio against the plan so far."""
    measured: Interval | None
    """Measured throughput ratio against the plan so far."""
    kept: bool
    reason: str
    samples_per_s: float | None = None
    """Throughput of the plan with this lever in it."""
    cumulative: float | None = None
    """Throughput ratio over the unmodified script, this lever included."""
