"""logging-every-rank: every rank writes the same log lines."""

from __future__ import annotations

from hotlap.diagnose.phases import measured_steps, phase_names
from hotlap.diagnose.ranks import timelines
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding, Where

CAUSE = "logging-every-rank"


def find(view: View) -> Finding | None:
    """Lines that log on all ranks, at least once in so many steps. The first rank would write them anyway."""
    ranks = timelines(view)
    if len(ranks) < 2:
        return None
    calls: list[dict[tuple[str, int, str], float]] = []
    for timeline in ranks:
        mine: dict[tuple[str, int, str], float] = {}
        steps = max(1, measured_steps(timeline.step, "logging", phase_names(timeline.header.phases)))
        for site in timeline.site:
            frame = timeline.frame.get(site.frame)
            if site.kind == "logging" and frame is not None and frame.user:
                key = (frame.file, frame.line, frame.func)
                mine[key] = mine.get(key, 0.0) + site.n / steps
        calls.append(mine)
    rates = {key: min(mine.get(key, 0.0) for mine in calls) for key in calls[0]}
    often = sorted([k for k, rate in rates.items() if rate >= view.policy.log_per_step], key=lambda k: -rates[k])
    if not often:
        return None
    where = [Where(*key, text=view.timeline.source.get(f"{key[0]}:{key[1]}", "")) for key in often]
    per_step = rates[often[0]]
    return Finding(
        CAUSE, 0.0, 0.0, confirmed=False, where=where[: view.policy.max_where],
        advice=f"Log on rank 0 alone at {where[0].file}:{where[0].line}: {len(ranks)} ranks write the same lines.",
        detail=f"{len(ranks)} ranks, {per_step:.3g} per step each", phase="logging",
        evidence={"ranks": len(ranks), "calls_per_step": per_step},
    )  # fmt: skip
