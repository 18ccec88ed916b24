"""Points of the report's chart: where steps went, as the run went on."""

from __future__ import annotations

from typing import Any

from hotlap.diagnose.phases import measured_steps, phase_ns
from hotlap.records.rows import Step

__all__ = ["over_time"]


def over_time(rows: list[Step], phases: list[str], points: int) -> list[dict[str, Any]]:
    """At most ``points`` means of consecutive rows: ``{step, t_s, step_s, phases: {phase: seconds per step}}``.

    ``t_s`` counts from the first row's start. A phase that was not measured in a point is left out of it.
    """
    rows = [row for row in rows if row.n > 0]
    size = max(1, -(-len(rows) // max(1, points)))
    out = []
    for at in range(0, len(rows), size):
        group = rows[at : at + size]
        steps = sum(row.n for row in group)
        seconds: dict[str, float] = {}
        for phase in phases:
            measured = measured_steps(group, phase, phases)
            if measured:
                seconds[phase] = sum(phase_ns(row, phase, phases) or 0 for row in group) / measured / 1e9
        out.append(
            {
                "step": group[0].i,
                "t_s": (group[0].t - rows[0].t) / 1e9,
                "step_s": sum(row.w for row in group) / steps / 1e9,
                "phases": seconds,
            }
        )
    return out
