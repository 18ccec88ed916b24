"""The call: what the host asks of the guest inside the user's process. JSON, found through ``HOTLAP_CALL``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hotlap.records.plan import Move

__all__ = ["ABLATIONS", "ENV", "TRIAL_AHEAD", "Call"]

ENV = "HOTLAP_CALL"
"""Environment variable that holds the path of the call file."""

ABLATIONS = ("data", "validation", "checkpoint", "logging")
"""What a throw-away trial can take away."""
TRIAL_AHEAD = 2
"""Steps that a trial's host may be ahead of its device (probe/device_time)."""


@dataclass(frozen=True)
class Call:
    """Everything the guest needs to know; it reads nothing else."""

    timeline_dir: str
    """Where to write timelines, one file per process."""
    mode: str = "watch"
    """``watch`` (diagnose: nothing is changed), ``trial`` (sandboxed), ``run`` (a plan, light probes)."""
    host_pid: int = 0
    """The guest ends itself when this process is gone. 0: nobody."""
    host_where: str = ""
    """Where that process lives (inject/host.py): a guest elsewhere does not see it, and goes on."""
    moves: list[Move] = field(default_factory=list)
    has_plan: bool = False
    """Whether the user gave the command a plan, which may hold knobs alone."""
    ablate: list[str] = field(default_factory=list)
    flush_s: float = 1.0
    """How often rows are written."""
    stack_hz: float = 50.0
    """Stack samples per second, 0: none. Prior: a sample costs about 0.1 ms, so 50 are half a percent of the run."""
    hits_most_s: float = 0.0
    """Longest time between two rows of stack samples, or of loading; 0: ever longer as the run grows old. A guard wants
    them fresh."""
    seed_offset: int = 0
    """Added to every seed the script sets (a trial's further seeds); 0 leaves seeding alone."""
    replay_batches: int = 0
    """Trial only: the training loader repeats the indices of its first n batches, so that caches are warm soon."""
    cores: int = 0
    scratch: str = ""
    """Folder for a lever's own files (decoded cache); removed by the host."""
    scratches: int = 1
    """How many processes of this machine have a folder of their own for the same training, each as much as the next."""
    offline: bool = False
    """Trackers (W&B, MLflow, Comet, ...) are told to stay offline."""
    export: bool = False
    """Hand the guard's figures to the tracker that the script uses."""
    extra: dict[str, Any] = field(default_factory=dict)
