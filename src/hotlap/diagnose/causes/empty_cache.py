"""empty-cache: the script gives the device's cached memory back inside the loop."""

from __future__ import annotations

from hotlap.diagnose.sites import calls, collect_calls
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "empty-cache"


def find(view: View) -> Finding | None:
    """The timed calls of ``torch.cuda.empty_cache``: a lower bound, since the next step asks for the memory anew."""
    found = collect_calls(view, calls(view, "memory", "empty_cache"))
    if not view.on_device:  # nothing is cached, nothing is given back
        return None
    at = f" at {found.where[0].file}:{found.where[0].line}" if found.where else ""
    evidence = {"each_s": found.each_s, "calls_per_step": found.per_step}
    return view.finding(
        CAUSE, found.seconds, f"Take torch.cuda.empty_cache(){at} out of the loop: it waits for the device, and the "
        "next step has to ask the driver for the same memory again.", found.where,
        detail=f"{found.per_step:.3g} per step", phase="residual", evidence=evidence,
    )  # fmt: skip
