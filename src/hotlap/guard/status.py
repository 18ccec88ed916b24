"""How the run goes now: numbers over the last seconds of its timeline, for people and for metrics."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace

from hotlap.diagnose.phases import measured_steps, phase_names, phase_ns
from hotlap.records.findings import Roof
from hotlap.records.guard import Alarm
from hotlap.records.rows import Step
from hotlap.records.timeline import Timeline

__all__ = ["RECENT_S", "Earlier", "Status", "read_status"]

RECENT_S = 30.0
"""What is called lately."""
LEAST_STEPS = 8
"""Slow steps: the last seconds hold at least so many."""
SILENT_ROWS = 4.0
"""Rows of steps (one each, or several short ones) that there was time for since the last one, from which on the script
hangs or pauses for long: what was its pace is no news."""


@dataclass(frozen=True)
class Earlier:
    """What earlier runs of the same command left behind."""

    roof: Roof | None = None
    steps: int | None = None
    """How many steps the last whole run made."""


@dataclass(frozen=True)
class Status:
    """Now. None: not measured, or no longer so: a script that makes no step has no pace."""

    steps: int = 0
    samples: int = 0
    """0: unknown."""
    train_s: float = 0.0
    """Seconds from the first recorded step to the last."""
    step_s: float | None = None
    """Mean seconds per step lately, validations and checkpoints included."""
    samples_per_s: float | None = None
    roof_share: float | None = None
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds per step lately, of the phases that were measured."""
    rss_bytes: int | None = None
    children_rss_bytes: int | None = None
    device_bytes: int | None = None
    device: str = ""
    left_s: float | None = None
    """Until the last step, when their number is known and the pace stays."""
    last_step_age_s: float | None = None
    """Since the last step that was written down, where it was asked for."""
    drift: Alarm | None = None
    """The drift that goes on."""
    drifts: int = 0
    """How many were told."""
    watched: bool = True
    """False: the guard gave up, and nothing is known any more."""


def read_status(
    timeline: Timeline | None, samples: int, earlier: Earlier, drift: Alarm | None = None, drifts: int = 0,
    now_ns: int | None = None,
) -> Status:  # fmt: skip
    """The numbers of a timeline that is being written; ``samples`` so far are counted by the reader.

    ``now_ns``: the timeline's own clock, ``time.monotonic_ns()`` on its machine; None: how it went at its last step.
    """
    if timeline is None or not timeline.step:
        return Status()
    rows = timeline.step
    last = rows[-1]
    end = last.t + last.w
    at = bisect_left(rows, end - int(RECENT_S * 1e9), key=lambda row: row.t)
    recent = rows[min(at, max(0, len(rows) - LEAST_STEPS)) :]
    steps, wall_s = sum(row.n for row in recent), sum(row.w for row in recent) / 1e9
    seen = sum(row.s for row in recent)
    done, step_s = last.i + last.n, wall_s / steps
    per_s = seen / wall_s if seen and wall_s > 0 else None
    tick = timeline.tick[-1] if timeline.tick else None
    left = max(0, earlier.steps - done) * step_s if earlier.steps is not None and earlier.steps > done else None
    age_s = None if now_ns is None else max(0, now_ns - end) / 1e9
    status = Status(
        steps=done, samples=samples, train_s=(end - rows[0].t) / 1e9, step_s=step_s, samples_per_s=per_s,
        roof_share=_roof_share(earlier.roof, per_s, step_s), phases=_phases(timeline, recent),
        rss_bytes=tick.rss_bytes if tick else None, children_rss_bytes=tick.children_rss_bytes if tick else None,
        device_bytes=tick.device_bytes if tick else None, device=timeline.device, left_s=left, drift=drift,
        drifts=drifts, last_step_age_s=age_s,
    )  # fmt: skip
    if age_s is None or age_s <= max(RECENT_S, SILENT_ROWS * wall_s / len(recent)):
        return status
    return replace(status, step_s=None, samples_per_s=None, roof_share=None, phases={}, left_s=None)


def _roof_share(roof: Roof | None, per_s: float | None, step_s: float) -> float | None:
    if roof is None:
        return None
    if roof.samples_per_s and per_s is not None:
        return per_s / roof.samples_per_s
    return roof.step_s / step_s if step_s > 0 else None


def _phases(timeline: Timeline, recent: list[Step]) -> dict[str, float]:
    names = phase_names(timeline.header.phases)
    seconds = {}
    for phase in names:
        steps = measured_steps(recent, phase, names)
        if steps:
            seconds[phase] = sum(phase_ns(row, phase, names) or 0 for row in recent) / steps / 1e9
    return seconds
