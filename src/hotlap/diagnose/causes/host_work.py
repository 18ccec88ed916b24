"""host-work: the script's own Python between the phases."""

from __future__ import annotations

from hotlap.diagnose.host import residual_seconds
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "host-work"


def find(view: View) -> Finding | None:
    """Residual that no other cause explains."""
    seconds, book = residual_seconds(view, "work")
    if view.share(seconds) < view.policy.host_work_share or seconds < view.policy.host_work_min_s:
        return None
    where = book.lines(view.policy.max_where)
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    evidence = {"residual_s": view.seconds("residual"), **view.stack_evidence(book)}
    return view.finding(
        CAUSE, seconds, f"Move the work{at} out of the step: do it once, every so many steps, or in another thread.",
        where, detail="Python between the phases", phase="residual", evidence=evidence,
    )  # fmt: skip
