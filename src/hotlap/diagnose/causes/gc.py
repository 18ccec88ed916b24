"""gc: garbage collection pauses the step."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "gc"


def find(view: View) -> Finding | None:
    """The gc phase."""
    seconds = view.seconds("gc")
    where = view.stacks.phase("gc").lines(view.policy.max_where)
    evidence = {"gc_s": seconds, "collections": len(view.events("gc"))}
    called = next((w for w in where if "gc.collect" in w.text), None)
    advice = (
        f"Take gc.collect() out of the loop at {called.file}:{called.line}." if called
        else "Call gc.freeze() after the set-up, and collect every few hundred steps by hand."
    )  # fmt: skip
    return view.finding(CAUSE, seconds, advice, where, detail="collector pauses", phase="gc", evidence=evidence)
