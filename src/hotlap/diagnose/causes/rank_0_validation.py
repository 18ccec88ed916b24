"""rank-0-validation: some ranks validate while the others wait."""

from __future__ import annotations

from hotlap.diagnose.ranks import timelines
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "rank-0-validation"


def find(view: View) -> Finding | None:
    """Validation shared out over all ranks would take as much less as there are more ranks at it."""
    ranks = timelines(view)
    by_rank = {t.header.rank: sum(1 for e in t.event if e.kind == "validation" and e.i > 0) for t in ranks}
    alone = [rank for rank, seen in by_rank.items() if seen]
    if not alone or len(alone) == len(by_rank) or view.timeline.header.rank not in alone:
        return None
    saved = view.seconds("validation") * (1.0 - len(alone) / len(by_rank))
    where = view.event_where("validation")
    waiting = [where for t in view.timeline.ranks for where in _barriers(view, t.header.rank)]
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    names = ", ".join(str(rank) for rank in alone)
    evidence = {"validations": by_rank[view.timeline.header.rank], "ranks_idle": len(by_rank) - len(alone),
                "wait_at": waiting, "shares_validation_with": "validation-cadence"}  # fmt: skip
    return view.finding(
        CAUSE, saved, f"Let every rank validate its part of the data{at} and add the sums up (all_reduce).", where,
        detail=f"rank {names} validates, {len(by_rank) - len(alone)} wait", phase="validation", evidence=evidence,
    )  # fmt: skip


def _barriers(view: View, rank: int) -> list[str]:
    """Lines at which a rank waits at a barrier."""
    timeline = next(t for t in view.timeline.ranks if t.header.rank == rank)
    frames = {site.frame for site in timeline.site if site.kind == "barrier"}
    return [f"{timeline.frame[f].file}:{timeline.frame[f].line}" for f in frames if f in timeline.frame]
