"""metrics-history: metrics are computed anew over a history that grows, so the steps get slower."""

from __future__ import annotations

from hotlap.diagnose.metric_growth import metric_growth
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "metrics-history"


def find(view: View) -> Finding | None:
    """What a step cost too much in the mean of the run seen: half of what it costs by the end of it."""
    found = metric_growth(view)
    if found is None:
        return None
    drift, where = found
    line = f"{where[0].file}:{where[0].line}"
    grown_s = drift.after_s - drift.before_s
    evidence = {"first_s": drift.before_s, "last_s": drift.after_s, "phase": drift.phase}
    return view.finding(
        CAUSE, grown_s / 2, f"Keep a running sum and count instead of the whole history at {line}: each step goes "
        "through all steps before it.", where, detail=f"{drift.after_s / max(drift.before_s, 1e-9):.2f}x over the run",
        phase=drift.phase, evidence=evidence,
    )  # fmt: skip
