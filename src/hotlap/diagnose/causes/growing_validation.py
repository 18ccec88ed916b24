"""growing-validation: each validation takes longer than the one before."""

from __future__ import annotations

from hotlap.diagnose.drift import grown_lines
from hotlap.diagnose.validation_growth import find_validation_growth
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "growing-validation"


def find(view: View) -> Finding | None:
    """A trend over the validations; the lines inside them that grew come before the line that calls them."""
    grown = find_validation_growth(view.timeline.event, view.policy)
    if grown is None:
        return None
    lines = [g.where for g in grown_lines(view, "validation")]
    where = (lines or view.event_where("validation"))[: view.policy.max_where]
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    return view.finding(
        CAUSE, grown.extra_s_per_step, f"Validate on a set of fixed size, and keep running values there instead of all "
        f"that was seen{at}.", where, detail=f"{grown.last_s / grown.first_s:.2f}x over {grown.count} validations",
        phase="validation", evidence={"first_s": grown.first_s, "last_s": grown.last_s, "seen": grown.count},
    )  # fmt: skip
