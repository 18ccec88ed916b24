"""A quick budget and a stand-in for the proof's interval."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from hotlap.records.trials import Interval, Window
from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget
from hotlap.trial.periodic import PeriodicStats

MakeArm = Callable[..., Arm]
QUICK = Budget(
    seconds=2.5, window_s=0.25, window_steps=4, warmup_least_s=0.1, warmup_s=2.0, min_pairs=2, precision=0.01,
    first_step_s=10.0, hang_s=1.0, neighbour_cores=99.0, poll_s=0.05, restarts=0,
)  # fmt: skip


def mean_ratio(windows: list[Window], periodic: PeriodicStats) -> Interval | None:
    """A stand-in for the proof's interval: ratio of means, with a width that never ends a comparison early."""
    overhead = {"baseline": periodic.baseline_s, "candidate": periodic.candidate_s}
    step_s = {}
    for arm, more in overhead.items():
        counted = [w.steady_s for w in windows if w.arm == arm and w.dropped is None]
        if not counted:
            return None
        step_s[arm] = statistics.fmean(counted) + more
    ratio = step_s["baseline"] / step_s["candidate"]
    return Interval(ratio, ratio * 0.97, ratio * 1.03)
