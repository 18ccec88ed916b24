"""Timeline to findings."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.diagnose.drift import find_drift
from hotlap.diagnose.notes import make_notes
from hotlap.diagnose.order import in_order
from hotlap.diagnose.over_time import over_time
from hotlap.diagnose.policy import DEFAULT, Policy
from hotlap.diagnose.registry import all_causes
from hotlap.diagnose.script import read_script
from hotlap.diagnose.step_model import fit_step_model
from hotlap.diagnose.surroundings import Around
from hotlap.diagnose.view import View, look
from hotlap.records.errors import HotlapError
from hotlap.records.findings import Findings, Throughput
from hotlap.records.machine import Machine
from hotlap.records.timeline import Timeline

__all__ = ["TooFewSteps", "diagnose"]


def _throughput(view: View) -> Throughput:
    times = view.times
    return Throughput(
        samples_per_s=times.samples / times.step_s if times.samples else None,
        steps_per_s=1.0 / times.step_s,
        step_s=times.step_s,
        steady_s=times.steady_s,
        batch=times.samples,
        steps_seen=view.timeline.n_steps,
        warmup_steps=view.steady.warmup_steps,
    )


class TooFewSteps(HotlapError):
    """There is too little of a training to say anything about it."""


def diagnose(
    timeline: Timeline, machine: Machine, name: str, policy: Policy = DEFAULT, around: Sequence[Around] = ()
) -> Findings:
    """What a timeline means. ``name`` is what the script is called in the document.

    ``around``: what the machine did beside the training, where Hotlap looked.

    Raises TooFewSteps when fewer than ``policy.min_steady_steps`` steady steps were seen.
    """
    view = look(timeline, machine, policy, around)
    if view.steady.steps < policy.min_steady_steps:
        seen = timeline.n_steps
        raise TooFewSteps(
            f"{name} trained {seen} step{'' if seen == 1 else 's'}, {view.steady.steps} of them steady; "
            f"a diagnosis needs at least {policy.min_steady_steps} steady steps.",
            "Let it train for longer: more data, more epochs, or a larger --steps or --budget.",
        )
    found = [finding for cause in all_causes() if (finding := cause.find(view)) is not None]
    return Findings(
        script=read_script(timeline, name, view.loader, next(iter(view.forward_where()), None)),
        throughput=_throughput(view),
        phases=view.times.shares,
        step_model=fit_step_model(view),
        findings=in_order(found, view.times, policy.min_share, view.device_idle_s),
        drift=find_drift(view),
        notes=make_notes(view),
        over_time=over_time(sorted(timeline.step, key=lambda row: row.i), view.phases, policy.over_time_points),
    )
