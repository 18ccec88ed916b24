"""straggler: one rank is late in each step, and the others wait for it."""

from __future__ import annotations

from hotlap.diagnose.kinds import is_idle, loader_blame
from hotlap.diagnose.ranks import late_rank, rank_times, timelines
from hotlap.diagnose.stacks import collect, merge
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding, Where
from hotlap.records.timeline import Timeline

CAUSE = "straggler"


def find(view: View) -> Finding | None:
    """The late rank, and the phase and line that make it late."""
    late = late_rank(view)
    if late is None:
        return None
    theirs = next(t for t in timelines(view) if t.header.rank == late.rank)
    theirs.source.update({k: v for k, v in view.timeline.source.items() if k not in theirs.source})
    where = _where(view, theirs, late.phase)
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    phase = late.phase.replace("_", " ")
    evidence = {
        "rank": late.rank, "late_phase": late.phase, "late_phase_s": late.phase_lost_s,
        "ranks": [{"rank": r.rank, "own_s": r.own_s, "waiting_s": r.waiting_s} for r in rank_times(view)],
    }  # fmt: skip
    return view.finding(
        CAUSE, late.lost_s, f"Look at rank {late.rank}'s {phase}{at}: it takes {late.phase_lost_s:.3g} s a step more "
        "than on the other ranks, which wait for it in backward.", where, detail=f"rank {late.rank}: {phase}",
        phase=late.phase, evidence=evidence,
    )  # fmt: skip


def _where(view: View, timeline: Timeline, phase: str) -> list[Where]:
    """Lines of that rank in the phase; of a data wait, those that its workers load with."""
    limit = view.policy.max_where
    if phase == "data_wait" and timeline.workers:
        workers = [collect(w, view.start_ns).where(lambda s: not is_idle(s)) for w in timeline.workers]
        lines = merge(workers, timeline.source, timeline.loops).lines(limit, loader_blame)
        if lines:
            return lines
    return collect(timeline, view.start_ns).phase(phase).lines(limit)
