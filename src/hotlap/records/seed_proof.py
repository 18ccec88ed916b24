"""``proof.json`` of ``hotlap prove``: whole runs of both arms, seed by seed, the verdict on them, and the machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hotlap.records.machine import Machine
from hotlap.records.plan import Plan
from hotlap.records.proof import Quality
from hotlap.records.trials import Interval, Window

__all__ = ["ArmRun", "MetricQuality", "SeedProof", "SeedRuns", "Stop", "TimeToQuality", "Word"]

Word = Literal["proved", "not proved", "refuted"]


@dataclass(frozen=True)
class Stop:
    """Where runs are stopped before their own end; all None: nowhere."""

    steps: int | None = None
    epochs: int | None = None
    loss: float | None = None
    """As soon as the mean loss of the last steps is at or below this."""

    @property
    def early(self) -> bool:
        """Whether runs are stopped at all."""
        return (self.steps, self.epochs, self.loss) != (None, None, None)


@dataclass(frozen=True)
class ArmRun:
    """One arm with one seed. All seconds count while it ran, never while it was frozen for the other's turn."""

    status: Literal["finished", "stopped", "failed"]
    """``finished``: at its own end, ``stopped``: by us, where asked or because the matter was decided."""
    reason: str
    exit_code: int | None
    steps: int
    run_s: float
    """Launch to end."""
    first_step_s: float | None
    """Launch to the end of the first step."""
    step: list[int] = field(default_factory=list)
    """Steps done at each point of the curve: every step, in a very long run every second, fourth, ..."""
    end_s: list[float] = field(default_factory=list)
    """When that step ended, from launch on."""
    samples: list[int] = field(default_factory=list)
    """Samples since the point before; 0: not known."""
    loss: list[float | None] = field(default_factory=list)
    """The step's loss; None: no number. Shorter than ``step``, or empty, where the script's losses were not seen."""
    past_steps: int = 0
    """Steps that it made beyond where it was to be stopped, before it was: not in the curve."""
    reached_s: float | None = None
    """When the loss of ``Stop.loss`` was reached."""
    metric: float | None = None
    """Last match of the metric in what the script printed."""

    @property
    def after_first_s(self) -> float:
        """Seconds from the end of the first step on."""
        return self.run_s - (self.first_step_s or 0.0)

    @property
    def own_end(self) -> bool:
        """Whether a failed run may have ended as the script wanted: with a status of its own, and no error printed."""
        return self.status == "failed" and self.reason == f"crashed with exit code {self.exit_code}"


@dataclass(frozen=True)
class SeedRuns:
    """Both arms with one seed."""

    seed: int
    command: list[str]
    first: Literal["baseline", "candidate"]
    """Which arm was launched first."""
    side_by_side: bool
    """Whether the arms took turns; otherwise they ran one after the other."""
    baseline: ArmRun
    candidate: ArmRun
    windows: list[Window] = field(default_factory=list)
    """Turn by turn: the steps alone, periodic work left out."""

    @property
    def usable(self) -> bool:
        """Whether both arms came through, or ended in the same way: a script may end with a status of its own.

        One that prints an error, or is killed, has crashed, in whichever arms.
        """
        one, other = self.baseline, self.candidate
        same_end = one.exit_code == other.exit_code and one.steps == other.steps and one.steps > 0
        return "failed" not in (one.status, other.status) or (one.own_end and other.own_end and same_end)

    def compared_s(self, whole: bool) -> tuple[float, float]:
        """Seconds of both arms for the same work, which their speedup is about; 0.0 where there is none.

        ``whole``: of the whole runs. Else, since a start-up belongs to those: per sample after the first step, or per
        step where samples are unknown.
        """
        if whole:
            return self.baseline.run_s, self.candidate.run_s
        runs = (self.baseline, self.candidate)
        in_samples = all(run.samples and all(run.samples) for run in runs)
        works = [sum(run.samples[1:]) if in_samples else run.steps - 1 for run in runs]
        one, other = (run.after_first_s / work if work > 0 else 0.0 for run, work in zip(runs, works, strict=True))
        return one, other


@dataclass(frozen=True)
class MetricQuality:
    """The verdict on what the script itself measured."""

    pattern: str
    lower_is_better: bool
    verdict: Word
    summary: str
    baseline: list[float | None] = field(default_factory=list)
    """Per seed."""
    candidate: list[float | None] = field(default_factory=list)
    delta_frac: float | None = None
    """How much worse the candidate is, over the baseline's mean; negative is better."""
    upper_frac: float | None = None
    margin_frac: float | None = None


@dataclass(frozen=True)
class TimeToQuality:
    """How much sooner the candidate reaches a loss, on the clock of its own run."""

    target: str
    """What has to be reached, in words without the number."""
    loss: list[float]
    """Per seed: the loss to reach."""
    baseline_s: list[float | None]
    """Per seed; None: not reached."""
    candidate_s: list[float | None]
    interval: Interval | None
    verdict: Word


@dataclass(frozen=True)
class SeedProof:
    """What ``hotlap prove`` can vouch for. Written after every seed."""

    verdict: Word
    speedup: Interval | None
    """Baseline's seconds over the candidate's, over seeds."""
    speedup_of: Literal["whole run", "after the first step"]
    """Whole runs from launch to end; of runs that were stopped, what came after the first step, for the same work."""
    steady: Interval | None
    """The same of the steps alone: without start-up, validation and checkpoints."""
    speed_verdict: Word
    quality: Quality
    metric: MetricQuality | None
    time_to_quality: TimeToQuality | None
    more: list[str]
    """What would decide what is not decided."""
    command: list[str]
    """As given, with ``{seed}`` in it."""
    seeded_by: Literal["command", "offset"]
    """``command``: ``{seed}``; ``offset``: Hotlap shifted the seeds that the script sets."""
    plan: Plan
    preserves: str
    machine: Machine
    asked_seeds: int
    stop: Stop
    seeds: list[SeedRuns] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    created: str = ""
    hotlap: str = ""
    commit: str | None = None
    """The commit of the script's git repository that was checked out; None: there was none."""
    changed: list[str] = field(default_factory=list)
    """Tracked files that differed from it."""
    schema: Literal["hotlap.prove/1"] = "hotlap.prove/1"
