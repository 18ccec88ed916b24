"""Phase shares of a step, periodic work at the script's own cadence."""

from __future__ import annotations

from dataclasses import dataclass

from hotlap.diagnose.periodic import Periodic, epoch_starts, phase_work
from hotlap.diagnose.phases import PERIODIC, core_ns, mean_s
from hotlap.diagnose.steady import Steady
from hotlap.records.rows import Event, Step

__all__ = ["Times", "measure"]


@dataclass(frozen=True)
class Times:
    """Seconds per step."""

    step_s: float
    """Periodic work included. > 0."""
    steady_s: float
    """Without periodic work. > 0."""
    phase_s: dict[str, float | None]
    """By phase; data wait includes the epoch starts' share. None: not measured. They add up to at most ``step_s``."""
    validation: Periodic
    checkpoint: Periodic
    epoch_start: Periodic
    samples: float | None
    """Samples per step."""
    micro: float
    """Micro-batches per step."""

    @property
    def shares(self) -> dict[str, float | None]:
        """Share of the step per phase, 0..1."""
        return {k: None if v is None else min(1.0, v / self.step_s) for k, v in self.phase_s.items()}

    @property
    def wait_s(self) -> float:
        """Data wait within an epoch: the epoch starts taken out."""
        return max(0.0, (self.phase_s.get("data_wait") or 0.0) - self.epoch_start.per_step_s)


def measure(
    rows: list[Step], steady: Steady, events: list[Event], phases: list[str], steps_per_epoch: float | None
) -> Times:
    """Mean seconds per step by phase over the steady rows; periodic work from the whole run (warm-up has some too)."""
    steps = max(1, steady.steps)
    steady_s = max(1e-9, sum(core_ns(steady.rows, phases)) / steps / 1e9)
    work = {phase: phase_work(phase, rows, steady.rows, events, phases) for phase in PERIODIC}
    starts = epoch_starts(rows, steps_per_epoch)
    phase_s: dict[str, float | None] = {}
    for phase in phases:
        found = work.get(phase)
        phase_s[phase] = found.per_step_s if found is not None else mean_s(steady.rows, phase, phases)
    if phase_s.get("data_wait") is not None:
        phase_s["data_wait"] = (phase_s["data_wait"] or 0.0) + starts.per_step_s
    periodic_s = starts.per_step_s + sum(w.per_step_s for w in work.values() if w is not None)
    step_s = steady_s + periodic_s
    seen = [row for row in steady.rows if row.s > 0]
    return Times(
        step_s=step_s,
        steady_s=steady_s,
        phase_s=_within(phase_s, step_s),
        validation=work["validation"] or Periodic(),
        checkpoint=work["checkpoint"] or Periodic(),
        epoch_start=starts,
        samples=sum(row.s for row in seen) / sum(row.n for row in seen) if seen else None,
        micro=max(1.0, sum(row.m for row in steady.rows) / steps),
    )


def _within(phase_s: dict[str, float | None], step_s: float) -> dict[str, float | None]:
    """The phases scaled to what a step takes, where they add up to more.

    Of short steps only some are watched closely, and watching costs them time: the clock over all of them is right
    about how long a step takes, the watched ones about what it goes to. Periodic work is measured whenever it comes,
    and stays.
    """
    own = {phase: value for phase, value in phase_s.items() if value is not None and phase not in PERIODIC}
    periodic_s = sum(phase_s.get(phase) or 0.0 for phase in PERIODIC)
    total_s = sum(own.values())
    if total_s + periodic_s <= step_s or total_s <= 0.0:
        return phase_s
    factor = max(0.0, step_s - periodic_s) / total_s
    return {**phase_s, **{phase: value * factor for phase, value in own.items()}}
