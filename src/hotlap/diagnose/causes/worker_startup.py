"""worker-startup: starting an epoch's workers (or its first batch) holds the step."""

from __future__ import annotations

from hotlap.diagnose.rebuilt import anew_each_step, times_rebuilt
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "worker-startup"


def find(view: View) -> Finding | None:
    """Epoch starts at their cadence. Workers started anew are ``workers-respawned`` or ``loader-rebuilt``, not this."""
    start = view.times.epoch_start
    if times_rebuilt(view) > 1 and start.count > 1:
        return None
    if view.workers > 0 and view.loader is not None and not view.loader.persistent_workers and start.count > 1:
        return None
    where = [*anew_each_step(view), *view.loader_where()]
    every = f"every {start.every:.0f} steps" if start.every else "once"
    evidence = {"each_s": start.each_s, "every_steps": start.every, "starts": start.count, "workers": view.workers}
    advice = f"Keep the loader's iterator going across epochs: a start costs {start.each_s:.3g} s {every}."
    return view.finding(
        CAUSE, start.per_step_s, advice, where, detail=f"epoch start {every}", phase="data_wait",
        evidence=evidence, ablation="data",
    )  # fmt: skip
