"""ddp-find-unused: DDP looks for unused parameters in every step, and there are none."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "ddp-find-unused"


def find(view: View) -> Finding | None:
    """find_unused_parameters=True, and every parameter had a gradient whenever it was looked at."""
    rows = [row for row in view.setting_rows("ddp") if row.value.get("find_unused")]
    if len(rows) < 2 or any(row.value.get("without_gradient") or row.value.get("static_graph") for row in rows):
        return None
    prior = view.policy.unused_search_prior
    where = view.setting_where(rows[-1])
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    evidence = {
        "looks": len(rows), "parameters": rows[-1].value.get("parameters"), "compute_s": view.compute_s,
        "basis": "prior", "prior": prior,
    }  # fmt: skip
    return view.finding(
        CAUSE, view.compute_s * prior, f"Drop find_unused_parameters=True{at}, if no step leaves a parameter out: all "
        f"had a gradient in the {len(rows)} steps looked at. One that has none makes DDP raise an error.", where,
        detail="none is unused", phase="backward", evidence=evidence,
    )  # fmt: skip
