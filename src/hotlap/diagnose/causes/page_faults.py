"""page-faults: memory goes back to the system and is faulted in again at each step."""

from __future__ import annotations

from hotlap.diagnose.faults import page_faults
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "page-faults"


def find(view: View) -> Finding | None:
    """What they cost, wherever in the step they come from."""
    faults = page_faults(view)
    if faults is None:
        return None
    evidence = {
        "faults_per_step": faults.per_step, "system_s": faults.system_s, "basis": "prior",
        "prior": view.policy.page_fault_s,
    }  # fmt: skip
    return view.finding(
        CAUSE, faults.seconds, "Let the C library keep freed memory: set "
        "MALLOC_MMAP_MAX_=0 and MALLOC_TRIM_THRESHOLD_ high, or preload tcmalloc.", view.forward_where(),
        detail=f"{faults.per_step:,.0f} page faults per step", phase="forward", evidence=evidence,
    )  # fmt: skip
