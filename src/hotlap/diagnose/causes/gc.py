"""gc: garbage collection pauses the step."""

from __future__ import annotations

from hotlap.diagnose.profiling import profiling
from hotlap.diagnose.sites import calls, collect_calls
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "gc"

_DEFAULT = (700, 10, 10)
"""Thresholds of Python 3.11 and 3.12; later ones are higher."""


def find(view: View) -> Finding | None:
    """The gc phase, without what the script collects by hand, and what a profiler's events bring about."""
    by_hand = collect_calls(view, calls(view, "gc", "collect"))
    told = profiling(view)
    full = collect_calls(view, [site for site in calls(view, "gc", "full") if site not in told.collections])
    seconds = max(0.0, view.seconds("gc") - by_hand.seconds - told.collected_s)
    collector = view.setting("collector")
    evidence = {
        "gc_s": view.seconds("gc"), "by_hand_s": by_hand.seconds, "full_each_s": full.each_s,
        "full_per_step": full.per_step, "thresholds": collector.get("thresholds"), "frozen": collector.get("frozen"),
    }  # fmt: skip
    lowered = min(collector.get("thresholds") or _DEFAULT) < min(_DEFAULT)
    where = [*(view.option_where(CAUSE) if lowered else []), *full.where][: view.policy.max_where]
    detail = f"a full collection takes {full.each_s:.2g} s" if full.per_step else "collector pauses"
    return view.finding(
        CAUSE, seconds, "Call gc.freeze() after the set-up, and raise the collector's thresholds (gc.set_threshold).",
        where, detail=detail, phase="gc", evidence=evidence,
    )  # fmt: skip
