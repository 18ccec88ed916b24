"""Where the steps of a run changed, and whether that lasts. Pure."""

from __future__ import annotations

from bisect import bisect_left

from hotlap.diagnose.drift import drift_in, where_it_may_lie
from hotlap.diagnose.policy import Policy
from hotlap.records.findings import Drift
from hotlap.records.guard import Alarm
from hotlap.records.rows import Step

__all__ = ["begin_ns", "fallen", "last_rows", "lasting_drift"]


def lasting_drift(rows: list[Step], phases: list[str], policy: Policy) -> Drift | None:
    """The drift in steady rows, once there is enough on either side of it (of a growth: enough in all).

    A change that shows at the end of the rows is looked for again in their last part alone, where it has its place and
    its size. One that does not show there has yet to; one that still goes on growing there stays as it was seen.
    """
    part, drift = rows, drift_in(rows, phases, policy)
    while drift is not None and (part := where_it_may_lie(part, drift, policy)):
        again = drift_in(part, phases, policy)
        if again is not None and again.growing:
            break
        drift = again
    return drift if drift is not None and _lasts(rows, drift, policy) else None


def _lasts(rows: list[Step], drift: Drift, policy: Policy) -> bool:
    split = begin_ns(rows, drift)
    if drift.growing:
        split = (rows[0].t + rows[-1].t) // 2
    left, right = [r for r in rows if r.t < split], [r for r in rows if r.t >= split]
    return all(
        sum(r.w for r in side) >= policy.drift_least_s * 1e9 and sum(r.n for r in side) >= policy.drift_least_steps
        for side in (left, right)
    )


def begin_ns(rows: list[Step], drift: Drift) -> int:
    """When a drift began."""
    return next((row.t for row in rows if row.i >= drift.at_step), rows[-1].t)


def last_rows(rows: list[Step], seconds: float, steps: int) -> int:
    """Index of the first row of the last ``seconds``; an earlier one where these hold fewer than ``steps`` steps."""
    end = rows[-1].t + rows[-1].w
    at = min(bisect_left(rows, end - int(seconds * 1e9), key=lambda row: row.t), len(rows) - 1)
    held = sum(row.n for row in rows[at:])
    while at > 0 and held < steps:
        at -= 1
        held += rows[at].n
    return at


def fallen(rows: list[Step], cores: list[int], drift: Alarm) -> int:
    """Index of the row from which steps are as before the drift: the split that fits its two levels best."""
    cost = best = 0.0
    found = 0
    for index, (row, core) in enumerate(zip(rows[:-1], cores, strict=False), 1):
        step_s = core / row.n / 1e9
        cost += row.n * (abs(step_s - drift.after_s) - abs(step_s - drift.before_s))  # of counting it to the slow ones
        if cost < best:
            best, found = cost, index
    return found
