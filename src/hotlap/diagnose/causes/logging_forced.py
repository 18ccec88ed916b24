"""logging-forced: log lines are forced out one by one (fsync, flush, a file opened anew for each)."""

from __future__ import annotations

from hotlap.diagnose.log_kinds import logged
from hotlap.diagnose.sites import timed_steps
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "logging-forced"


def find(view: View) -> Finding | None:
    """The forced part of the logging."""
    found = logged(view, "forced")
    fsync = sum(site.w for site in view.timeline.site if site.op == "fsync" and site.t >= view.start_ns)
    fsync_s = fsync / max(1, timed_steps(view, "logging")) / 1e9
    evidence = {
        "logging_s": found.phase_s, "residual_s": found.residual_s, "fsync_s": fsync_s,
        "calls_per_step": found.timed.per_step, **view.stack_evidence(found.book),
    }  # fmt: skip
    what = "os.fsync waits for the disk" if fsync_s > 0.5 * found.seconds else "each line is written out by itself"
    return view.finding(
        CAUSE, found.seconds, f"Keep the file open, and flush every second instead of every step{found.at}.",
        found.where, detail=what, phase=found.phase, evidence=evidence, ablation="logging",
    )  # fmt: skip
