"""gc-collect: the script collects garbage by hand inside the loop."""

from __future__ import annotations

from hotlap.diagnose.sites import calls, collect_calls
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "gc-collect"


def find(view: View) -> Finding | None:
    """The timed calls of ``gc.collect``."""
    found = collect_calls(view, calls(view, "gc", "collect"))
    at = f" at {found.where[0].file}:{found.where[0].line}" if found.where else ""
    evidence = {"each_s": found.each_s, "calls_per_step": found.per_step, "gc_s": view.seconds("gc")}
    return view.finding(
        CAUSE, found.seconds, f"Take gc.collect(){at} out of the loop: it looks at every object of the process, and "
        "Python collects by itself.", found.where, detail=f"{found.per_step:.3g} per step", phase="gc",
        evidence=evidence,
    )  # fmt: skip
